"""Pictures of events: what was found in one of them, as an interactive page, a figure, or a small drawing."""
