"""Keys and allow-lists: access to the sockets, and the right to command the node."""
