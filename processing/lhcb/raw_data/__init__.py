"""From the bytes of a batch to fragments and ODIN."""
