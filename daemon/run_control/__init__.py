"""The states of a node and the commands that change them."""
