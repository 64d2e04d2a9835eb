"""The trigger configuration: its files, the line files of users, and its TCK document."""
