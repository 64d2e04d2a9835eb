"""Reports of a decision: the selected objects, as words and as report objects, and routing bits."""
