"""Chaos soak: real processes are killed and stopped at random; afterwards every fed event must be in the outputs."""
