"""The conversation with the feeders: fragments, credits, acknowledgements."""
