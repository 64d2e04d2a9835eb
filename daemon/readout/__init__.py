"""Input of a node: sockets of feeders, fragments, credits, acknowledgements, runs."""
