"""The results of the checker as text, JSON, plots and HTML."""
