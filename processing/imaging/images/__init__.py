"""The image of an event from its strips: its shape, the places of its rows, and flags for strips that are wrong."""
