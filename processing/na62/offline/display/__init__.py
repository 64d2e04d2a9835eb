"""Pictures of single events: the two spots with their hits, and the rings."""
