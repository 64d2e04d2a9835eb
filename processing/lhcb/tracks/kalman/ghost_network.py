"""The network for the ghost probability of long tracks: its inputs, weights and file
(docs/physics/ghost-probability.md)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Record, SharedTypes, constant_column
from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.json_file import numbers, read_json_file
from hltnode.processing.lhcb.tracks.long.collections import TrackOrigin
from hltnode.processing.lhcb.ut.collections import NO_HIT

GHOST_NETWORK_FILE = "ghost_network.json"
FORMAT, VERSION = "hltnode ghost network", 1

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

SMALLEST_SPREAD = float(np.finfo(np.float32).tiny)
"""Kernels multiply by the inverse of a spread, in single precision."""

FloatArray = NDArray[np.float64]

GHOST_NETWORK = Record(
    "ghost_network",
    np.dtype(
        [
            ("mean", "<f4", (N_INPUTS,)),
            ("inverse_spread", "<f4", (N_INPUTS,)),
            ("hidden", "<f4", (N_INPUTS, N_HIDDEN)),
            ("hidden_bias", "<f4", (N_HIDDEN,)),
            ("output", "<f4", (N_HIDDEN,)),
            ("output_bias", "<f4"),
        ]
    ),
    {
        "mean": "of each input",
        "inverse_spread": "1 / standard deviation",
        "hidden": "weights of the inputs in each hidden node",
        "output": "weights of the hidden nodes",
    },
)

ghost_types = SharedTypes(
    __file__,
    "ghost_types",
    records=(GHOST_NETWORK,),
    sizes={"n_ghost_inputs": N_INPUTS, "n_ghost_hidden": N_HIDDEN},
)

ghost_network = constant_column("ghost_network", GHOST_NETWORK)
"""GhostNetwork.to_bytes()."""


class GhostNetworkError(GeometryError):
    """A file of weights is invalid; the message names it."""


@dataclass(frozen=True, slots=True, eq=False)
class GhostNetwork:
    """One hidden layer: u = output . max(0, hidden^T (inputs - mean) / spread + hidden_bias) + output_bias, and the
    probability (1 + u / sqrt(1 + u^2)) / 2. Arrays as in GHOST_NETWORK; `provenance`: training data and performance."""

    mean: FloatArray
    spread: FloatArray
    hidden: FloatArray
    hidden_bias: FloatArray
    output: FloatArray
    output_bias: float
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def builtin(cls) -> Self:
        """The network for the built-in detector."""
        return cls.load(Path(__file__).parent)

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read ghost_network.json of a directory. Raises GhostNetworkError, which names the file."""
        return read_json_file(Path(directory) / GHOST_NETWORK_FILE, (FORMAT, VERSION), cls._of, GhostNetworkError)

    @classmethod
    def _of(cls, content: Mapping[str, Any]) -> Self:
        if tuple(content["inputs"]) != INPUTS:
            raise ValueError(f"has the inputs {content['inputs']}, expected {list(INPUTS)}")
        spread = numbers(content, "spread", (N_INPUTS,))
        if not (spread >= SMALLEST_SPREAD).all():
            raise ValueError(f"spread must be above 0, {SMALLEST_SPREAD:.3g} at least")
        return cls(
            mean=numbers(content, "mean", (N_INPUTS,)),
            spread=spread,
            hidden=numbers(content, "hidden", (N_INPUTS, N_HIDDEN)),
            hidden_bias=numbers(content, "hidden_bias", (N_HIDDEN,)),
            output=numbers(content, "output", (N_HIDDEN,)),
            output_bias=float(numbers(content, "output_bias", ())),
            provenance=content["provenance"],
        )

    def as_json(self) -> str:
        """The content of the file; every number has six digits."""
        parts: list[tuple[str, Any]] = [("format", FORMAT), ("version", VERSION), ("provenance", self.provenance)]
        parts.append(("inputs", INPUTS))
        for name in ("mean", "spread", "hidden", "hidden_bias", "output", "output_bias"):
            values = np.asarray(getattr(self, name), np.float64)
            rounded = np.array([float(f"{value:.5e}") for value in values.ravel()]).reshape(values.shape)
            parts.append((name, rounded.tolist()))
        return "{\n" + ",\n".join(f' "{name}": {json.dumps(value)}' for name, value in parts) + "\n}\n"

    def to_bytes(self) -> bytes:
        """The bytes for kernels."""
        record = np.zeros(1, GHOST_NETWORK.dtype)
        record["inverse_spread"] = 1.0 / self.spread
        for name in ("mean", "hidden", "hidden_bias", "output", "output_bias"):
            record[name] = getattr(self, name)
        return record.tobytes()

    def probability(self, inputs: FloatArray) -> FloatArray:
        """The ghost probabilities f64[n] of tracks with inputs f64[n, N_INPUTS]."""
        hidden = np.maximum((inputs - self.mean) / self.spread @ self.hidden + self.hidden_bias, 0.0)
        u = hidden @ self.output + self.output_bias
        probability: FloatArray = 0.5 * (1.0 + u / np.sqrt(1.0 + u * u))
        return probability


def inputs_of(columns: Mapping[str, NDArray[Any]]) -> FloatArray:
    """Inputs f64[n, N_INPUTS] of long tracks, from columns of `long_tracks`, each [n] or [n, width], and
    `velo_hit_count`."""
    qop, error = columns["fitted_qop"].astype(np.float64), columns["qop_error"].astype(np.float64)
    slope2 = columns["beam_tx"].astype(np.float64) ** 2 + columns["beam_ty"].astype(np.float64) ** 2
    change = {name: np.abs(columns[f"end_{name}"].astype(np.float64) - columns[name]) for name in ("tx", "ty", "y")}
    inputs = (
        _logarithm_of_1_and(columns["chi2"]),
        _logarithm_of_1_and(columns["full_chi2"]),
        _logarithm_of_1_and(columns["ut_chi2"]),
        (columns["ut_hits"] != NO_HIT).sum(axis=1),
        columns["velo_hit_count"],
        columns["hit_count"],
        np.log(np.clip(np.abs(qop), 1e-6, 0.1)),
        np.log(np.clip(slope2, 1e-6, 1.0)),
        _logarithm_of_1_and(np.abs(columns["qop"] - qop) / error),
        columns["origin"] == TrackOrigin.MATCHED,
        _logarithm_of_1_and(1e3 * change["tx"]),
        _logarithm_of_1_and(1e3 * change["ty"]),
        _logarithm_of_1_and(change["y"]),
    )
    return np.stack([np.asarray(values, np.float64) for values in inputs], axis=1)


def _logarithm_of_1_and(values: NDArray[Any]) -> FloatArray:
    found: FloatArray = np.log1p(np.clip(np.nan_to_num(values.astype(np.float64)), 0.0, 1e4))
    return found
