"""Commands for a node: run it, control it, create its keys."""
