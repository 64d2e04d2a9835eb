"""Bins of the variables against which rates and resolutions are drawn."""

import numpy as np

from hltnode.processing.offline.checks.binning import Binning

PARTICLE_BINNINGS: dict[str, Binning] = {
    "p": Binning("p", "GeV", np.geomspace(1, 100, 21), scale=1e-3, logarithmic=True),
    "pt": Binning("$p_T$", "GeV", np.concatenate([np.arange(0, 2, 0.2), np.arange(2, 5.01, 0.5)]), scale=1e-3),
    "eta": Binning(r"$\eta$", "", np.linspace(2, 5, 16)),
    "phi": Binning(r"$\phi$", "rad", np.linspace(-np.pi, np.pi, 19)),
    "n_pvs": Binning("number of primary vertices", "", np.arange(-0.5, 20.6, 1)),
}

TRACK_BINNINGS: dict[str, Binning] = PARTICLE_BINNINGS | {"eta": Binning(r"$\eta$", "", np.linspace(-5, 5, 26))}
"""For tracks, which also fly backward."""
