"""Features that move with labels, and their last step."""
