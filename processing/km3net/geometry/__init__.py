"""Detectors: built-in towers and files of KM3NeT."""
