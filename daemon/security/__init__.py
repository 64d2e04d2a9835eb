"""Who may use a socket and who may command the node."""
