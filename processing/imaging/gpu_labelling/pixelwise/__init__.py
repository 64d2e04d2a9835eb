"""Labels and features pixel by pixel: the baselines that runs must beat."""
