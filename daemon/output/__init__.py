"""What a batch leaves behind: decisions, files and their journal, event streams."""
