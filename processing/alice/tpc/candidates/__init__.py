"""Groups of merged tracks for lines: jets, V0 candidates."""
