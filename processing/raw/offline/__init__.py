"""Tools of the chain that no node imports to decide on events."""
