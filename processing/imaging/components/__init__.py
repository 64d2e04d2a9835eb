"""Connected components of the foreground: runs of pixels, their labels, and the features of each component."""
