"""The network for the ghost probability of long tracks: its inputs, weights and file
(docs/physics/ghost-probability.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import SharedTypes, constant_column
from hltnode.processing.lhcb.networks.one_hidden_layer import (
    FloatArray,
    NetworkError,
    NetworkForm,
    OneHiddenLayer,
    logarithm_of_1_and,
)
from hltnode.processing.lhcb.tracks.long.collections import TrackOrigin
from hltnode.processing.lhcb.ut.collections import NO_HIT

INPUTS = (
    "velo_chi2",
    "full_chi2",
    "ut_chi2",
    "ut_hits",
    "velo_hits",
    "scifi_hits",
    "inverse_momentum",
    "angle",
    "momentum_change",
    "matched",
    "end_tx_change",
    "end_ty_change",
    "end_y_change",
)
"""For each track: chi2 of its fits (columns chi2, full_chi2, ut_chi2), numbers of hits, |q/p| and tx² + ty² of the fit,
whether it comes from matching, and the changes by the fit of q/p (over its error), slopes and y (mm) at the end."""
N_INPUTS, N_HIDDEN = len(INPUTS), 16


class GhostNetworkError(NetworkError):
    """A file of weights is invalid; the message names it."""


FORM = NetworkForm(
    name="ghost_network",
    title="hltnode ghost network",
    file="ghost_network.json",
    folder=Path(__file__).parent,
    inputs=INPUTS,
    n_hidden=N_HIDDEN,
    error=GhostNetworkError,
)
GHOST_NETWORK = FORM.record

ghost_types = SharedTypes(
    __file__,
    "ghost_types",
    records=(GHOST_NETWORK,),
    sizes={"n_ghost_inputs": N_INPUTS, "n_ghost_hidden": N_HIDDEN},
)

ghost_network = constant_column("ghost_network", GHOST_NETWORK)
"""GhostNetwork.to_bytes()."""


class GhostNetwork(OneHiddenLayer):
    """The response is the ghost probability."""

    __slots__ = ()

    form = FORM


def inputs_of(columns: Mapping[str, NDArray[Any]]) -> FloatArray:
    """Inputs f64[n, N_INPUTS] of long tracks, from columns of `long_tracks`, each [n] or [n, width], and
    `velo_hit_count`."""
    qop, error = columns["fitted_qop"].astype(np.float64), columns["qop_error"].astype(np.float64)
    slope2 = columns["beam_tx"].astype(np.float64) ** 2 + columns["beam_ty"].astype(np.float64) ** 2
    change = {name: np.abs(columns[f"end_{name}"].astype(np.float64) - columns[name]) for name in ("tx", "ty", "y")}
    inputs = (
        logarithm_of_1_and(columns["chi2"]),
        logarithm_of_1_and(columns["full_chi2"]),
        logarithm_of_1_and(columns["ut_chi2"]),
        (columns["ut_hits"] != NO_HIT).sum(axis=1),
        columns["velo_hit_count"],
        columns["hit_count"],
        np.log(np.clip(np.abs(qop), 1e-6, 0.1)),
        np.log(np.clip(slope2, 1e-6, 1.0)),
        logarithm_of_1_and(np.abs(columns["qop"] - qop) / error),
        columns["origin"] == TrackOrigin.MATCHED,
        logarithm_of_1_and(1e3 * change["tx"]),
        logarithm_of_1_and(1e3 * change["ty"]),
        logarithm_of_1_and(change["y"]),
    )
    return np.stack([np.asarray(values, np.float64) for values in inputs], axis=1)
