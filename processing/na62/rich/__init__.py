"""The RICH: hits of photomultipliers, and the rings that fit them."""
