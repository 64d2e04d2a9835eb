"""What the checker found, as text, JSON, plots and HTML."""
