"""The status page of a node: the content of /status, /metrics and /histograms as one HTML page."""
