"""Seeds of tracks: chains of clusters that lie on nearly straight lines."""
