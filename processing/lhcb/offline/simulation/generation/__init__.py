"""Which particles an event has."""
