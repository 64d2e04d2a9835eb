"""The SciFi tracker: from raw banks to hits sorted by x in each zone."""
