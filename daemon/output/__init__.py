"""The results of a batch leave the node: decisions, event files and their journal, event streams."""
