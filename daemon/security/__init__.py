"""Access to the node: keys and allow-lists, the right to give commands, limits on connections."""
