"""A model of a farm of nodes: sources, links, the supervisor, event builders, back ends, outputs and faults."""
