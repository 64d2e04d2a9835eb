"""Commands on files of events, without a node."""
