"""Dumps of another program's view of events, and the comparison with ours, quantity by quantity."""
