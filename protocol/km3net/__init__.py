"""What an underwater neutrino telescope puts on the wire: hits by PMT, and the truth of the simulation."""
