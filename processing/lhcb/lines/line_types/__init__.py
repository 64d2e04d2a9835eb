"""The types of lines: a selection with its cuts as fields."""
