"""The banks of an event: their sizes, types and sources, and what is odd about them."""
