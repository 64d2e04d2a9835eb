"""The page /farm: one row for each node of a farm, read by this node from the others."""
