"""The muon stations: decoding of raw banks to hits, and identification of muons among the long tracks."""
