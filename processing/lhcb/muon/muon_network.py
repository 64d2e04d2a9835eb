"""The network that tells muons from other long tracks: its inputs, weights and file
(docs/physics/muon.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import SharedTypes, constant_column
from hltnode.processing.lhcb.geometry.muon import N_STATIONS
from hltnode.processing.lhcb.muon.collections import FEATURES, NO_HIT, STUB_NUMBERS
from hltnode.processing.lhcb.networks.one_hidden_layer import (
    FloatArray,
    NetworkError,
    NetworkForm,
    OneHiddenLayer,
    logarithm_of_1_and,
)

RESIDUALS = tuple(name for name in FEATURES if name.startswith(("muon_x_", "muon_y_")))
_FIRST_RESIDUAL = FEATURES.index(RESIDUALS[0])
_FIRST_CROSSED = FEATURES.index("muon_crossed_m2")
INPUTS = (
    *("chi2", "uncorrelated_chi2", "dtx", "dty", "velo_dty"),
    *("inverse_momentum", "angle", "stations", "crossed", "event_hits", "ecal_energy"),
    *(name.removeprefix("muon_") for name in RESIDUALS),
)
"""For each track: chi2 of its muon hits with and without correlations; the differences of slopes of these hits and the
track, in x and y, and the track at the beam, in y; |q/p|; tx² + ty² behind the SciFi; number of its muon hits, and of
nearest hits that are crossings; muon hits of the event; energy of the calorimeter's cells that it crosses; distances of
the nearest hits in their errors."""
N_INPUTS, N_HIDDEN = len(INPUTS), 16

MAX_RESIDUAL = 30.0
"""Errors: farther hits, and stations without hits, count as this far."""


class MuonNetworkError(NetworkError):
    """A file of weights is invalid; the message names it."""


FORM = NetworkForm(
    name="muon_network",
    title="hltnode muon network",
    file="muon_network.json",
    folder=Path(__file__).parent,
    inputs=INPUTS,
    n_hidden=N_HIDDEN,
    error=MuonNetworkError,
)
MUON_NETWORK = FORM.record

muon_network_types = SharedTypes(
    __file__,
    "muon_network_types",
    records=(MUON_NETWORK,),
    sizes={
        "n_muon_inputs": N_INPUTS,
        "n_muon_hidden": N_HIDDEN,
        "first_muon_residual": _FIRST_RESIDUAL,
        "first_muon_crossed": _FIRST_CROSSED,
        "max_muon_residual": MAX_RESIDUAL,
    },
)
"""first_muon_residual, first_muon_crossed: places in the features of a track."""

muon_network = constant_column("muon_network", MUON_NETWORK)
"""MuonNetwork.to_bytes()."""


class MuonNetwork(OneHiddenLayer):
    """The response is near 1 for a muon, near 0 for another particle."""

    __slots__ = ()

    form = FORM

    @property
    def checksum(self) -> int:
        """CRC-32 of the weights for kernels, so that a key of a configuration stands for its weights."""
        return crc32(self.to_bytes())


def inputs_of(columns: Mapping[str, NDArray[Any]]) -> FloatArray:
    """Inputs f64[n, N_INPUTS] of long tracks with muon hits, from columns of `long_tracks`, each [n] or [n, width]."""
    size = np.abs(columns["qop"].astype(np.float64))
    stub = dict(zip(STUB_NUMBERS, columns["muon_stub"].astype(np.float64).T, strict=True))
    features = columns["muon_features"].astype(np.float64)
    slope2 = columns["tx"].astype(np.float64) ** 2 + columns["ty"].astype(np.float64) ** 2
    crossed = features[:, _FIRST_CROSSED : _FIRST_CROSSED + N_STATIONS] == 2.0
    inputs = (
        logarithm_of_1_and(columns["muon_chi2"]),
        logarithm_of_1_and(stub["chi2"]),
        *(np.log(np.clip(np.abs(stub[name]), 1e-5, 1.0)) for name in ("dtx", "dty", "velo_dty")),
        np.log(np.clip(size, 1e-6, 0.1)),
        np.log(np.clip(slope2, 1e-6, 1.0)),
        (columns["muon_hits"] != NO_HIT).sum(axis=1),
        crossed.sum(axis=1),
        logarithm_of_1_and(stub["event_hits"]),
        logarithm_of_1_and(columns["ecal_energy"]),
        *logarithm_of_1_and(np.minimum(np.abs(features[:, _FIRST_RESIDUAL:]), MAX_RESIDUAL)).T,
    )
    return np.stack([np.asarray(of_input, np.float64) for of_input in inputs], axis=1)
