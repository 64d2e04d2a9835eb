"""What a node reads of the machine it runs on, and asks of it."""
