"""HA4 with chunks of 32 pixels: half as many pixels a warp and step as in `ha4_64`; 4-connected."""
