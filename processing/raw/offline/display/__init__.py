"""Pictures of single events: the sizes of banks by source."""
