"""Pictures of sub-slices and of windows of time: pixel hits with time as colour, tracks of vertices."""
