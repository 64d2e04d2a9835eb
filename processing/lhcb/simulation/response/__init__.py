"""What the detectors see of the particles."""
