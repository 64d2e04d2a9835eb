"""Lines on sizes and presence of banks."""
