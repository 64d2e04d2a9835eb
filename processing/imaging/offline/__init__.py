"""Offline tools of the chain: simulated images and pictures of events. The chain does not import them."""
