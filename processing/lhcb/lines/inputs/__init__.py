"""The inputs of lines: collections of candidates and their fields."""
