"""The configuration of a node: its model, and how it is loaded."""
