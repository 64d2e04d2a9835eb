"""What only the detectors of LHCb have."""
