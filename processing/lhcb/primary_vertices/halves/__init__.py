"""Primary vertices of each half of the VELO, and their distances (docs/physics/velo-halves.md)."""
