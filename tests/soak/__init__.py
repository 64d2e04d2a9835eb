"""Chaos soak: real processes killed and stopped at random; afterwards every event fed is looked for in the outputs."""
