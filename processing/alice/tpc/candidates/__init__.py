"""Groups of merged tracks for lines: jets."""
