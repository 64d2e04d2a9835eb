"""Pictures of sub-slices and of windows of time: hits in space, with time as colour."""
