"""Commands on event files, without a node."""
