"""Pictures of reconstructed events: an interactive page, a figure, or a small drawing."""
