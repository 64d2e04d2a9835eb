"""Raw banks and truth banks of simulated events."""
