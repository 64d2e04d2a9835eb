"""The page of a node for people: what /status, /metrics and /histograms say, as one HTML page."""
