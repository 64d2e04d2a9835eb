"""What the lines of a trigger configuration do to a sample of events: rates, overlaps, scans over a cut."""
