"""The ionisation of a track and the particle that it fits, in double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hltnode.processing.alice.tpc.merging.fit.fit_merged_tracks import fit_merged_tracks

CONSTANTS: Mapping[str, float | int] = {each.name: each.value for each in fit_merged_tracks.constants}
FIRST_EDGE, N_BINS = 16.0, 48


def bin_of(charge: float) -> int:
    """Bins of an eighth of an octave, linear within an octave."""
    if charge < FIRST_EDGE:
        return 0
    fraction, exponent = np.frexp(np.float32(charge))
    return min(8 * (int(exponent) - 5) + int(np.floor(16 * (float(fraction) - 0.5))), N_BINS - 1)


def truncated_mean(charges: Sequence[float], share: float) -> float:
    """Mean of the lowest share; the charges of the last bin count as their mean."""
    if not len(charges):
        return 0.0
    number = np.array([bin_of(charge) for charge in charges])
    mean = [np.mean(np.array(charges, float)[number == i]) if (number == i).any() else 0.0 for i in range(N_BINS)]
    flat = np.array(mean)[np.sort(number)]
    wanted = share * len(flat)
    weight = np.clip(wanted - np.arange(len(flat)), 0.0, 1.0)
    return float((flat * weight).sum() / wanted)


def ionisation(over_p2: float, mass: float) -> float:
    """beta^(-5/3), relative to a minimum ionising particle."""
    beta = 1.0 / np.sqrt(1.0 + mass**2 * over_p2)
    return float(beta ** (-5.0 / 3.0))


def particle_of(measured: float, over_p2: float, separation: float = CONSTANTS["separation"]) -> int:
    """0, 1, 2 for pion, kaon and proton."""
    bands = [ionisation(over_p2, CONSTANTS[name]) for name in ("mass", "kaon_mass", "proton_mass")]
    found = 0
    for i, (lighter, own) in enumerate(pairwise(bands), 1):
        if own / lighter > separation and measured > np.sqrt(own * lighter):
            found = i
    return found


def lost(t: Any, dx: Any, loss: Any, mass: float) -> Any:
    """q / pT behind a step of dx, with loss GeV per cm; t: the state behind the step without loss."""
    p = np.sqrt(1.0 + float(t.l) ** 2) / abs(float(t.q))
    way = float(dx) * np.sqrt((1.0 + float(t.l) ** 2) / (1.0 - float(t.s) ** 2))
    share = float(loss) * way * np.hypot(p, mass) / p**2
    return np.float32(float(t.q) * (1.0 + np.clip(share, -0.1, 0.1)))
