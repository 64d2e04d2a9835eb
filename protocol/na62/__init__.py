"""What NA62's RICH puts on the wire: bank types, sources, hits, and the truth of the simulation."""
