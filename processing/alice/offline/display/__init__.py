"""Pictures of a slice of the TPC: clusters, links, seeds and tracks."""
