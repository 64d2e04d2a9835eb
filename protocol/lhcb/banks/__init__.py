"""The raw banks of the detectors of LHCb."""
