"""Formats of the detectors of LHCb."""
