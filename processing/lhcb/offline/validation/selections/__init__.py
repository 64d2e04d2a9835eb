"""Trigger lines against truth: efficiencies on signal decays, and which part of them is due to the signal itself."""
