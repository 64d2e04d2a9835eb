"""What an event says of its decision: what was selected, as words and as objects of reports, and routing bits."""
