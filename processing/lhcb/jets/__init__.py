"""Jets: long tracks of one primary vertex and photons in cones of pseudorapidity and azimuth."""
