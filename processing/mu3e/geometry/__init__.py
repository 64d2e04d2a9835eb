"""The sensors of the pixel detector."""
