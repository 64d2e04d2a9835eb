"""Places of label images, and the numbers of components from them."""
