"""What the pixel detector of a mu -> eee experiment puts on the wire: hits by sensor, and the truth of the simulation."""
