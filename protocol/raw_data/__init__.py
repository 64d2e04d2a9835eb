"""Containers of raw data that all detectors share."""
