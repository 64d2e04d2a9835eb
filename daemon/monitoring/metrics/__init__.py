"""Prometheus metrics of a node: the table of them, and the collector that reads it at scrape time."""
