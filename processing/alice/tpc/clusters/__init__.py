"""The clusters of each slice, sorted by row and by the bins of a grid."""
