"""Numbers of a checker: efficiencies, ghosts, residuals, curves and mass peaks."""
