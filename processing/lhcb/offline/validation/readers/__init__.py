"""Reference samples in formats of other programs."""
