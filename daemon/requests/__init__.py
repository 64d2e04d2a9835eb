"""Requests: clients ask what the node would decide on their events, beside its run."""
