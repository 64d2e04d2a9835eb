"""Studies of the lines of a trigger configuration on a sample: rates, overlaps, scans over a cut."""
