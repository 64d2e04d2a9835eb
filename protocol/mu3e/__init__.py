"""What the pixels of a mu -> eee experiment put on the wire: hits by sensor, and the truth of the simulation."""
