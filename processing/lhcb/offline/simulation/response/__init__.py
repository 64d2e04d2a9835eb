"""The response of the detectors to the particles."""
