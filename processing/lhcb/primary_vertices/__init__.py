"""Primary vertices from VELO tracks."""
