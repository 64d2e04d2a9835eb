"""Outputs of a node: decisions, event files with their journal, event streams."""
