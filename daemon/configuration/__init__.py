"""The configuration of a node: model and loading."""
