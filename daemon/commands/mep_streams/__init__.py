"""Commands that send MEPs to nodes, and that record those of a tap."""
