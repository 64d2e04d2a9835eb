"""Commands on a node: serve it, command it, make its keys."""
