"""What ALICE's TPC puts on the wire: bank types, sources, clusters, and the truth of the simulation."""
