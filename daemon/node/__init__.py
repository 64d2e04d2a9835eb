"""One node: its parts put together, its periodic work, its sizes."""
