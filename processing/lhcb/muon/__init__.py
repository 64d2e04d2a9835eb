"""The muon stations: from raw banks to hits, and which long tracks are muons."""
