"""A chain whose events have parts: bytes of banks, in slices. Tests copy this package out of the tree."""
