"""The trigger configuration: its files, those of users with lines, and its document under its key."""
