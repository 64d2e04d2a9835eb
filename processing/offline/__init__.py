"""Offline tools that any chain can use: simulation, validation and reports without a detector."""
