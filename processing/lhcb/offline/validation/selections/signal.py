"""The signal decay of each event: its products and its tracks (docs/physics/selection.md)."""

from dataclasses import dataclass

import numpy as np

from hltnode.processing.lhcb.offline.validation.checker.matching import MATCHED_FRACTION
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable, id_keys
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask

_STABLE = (11, 13, 211, 321, 2212)
"""Charged particles that the simulation follows (PDG): their daughters are no products of the decay."""


@dataclass(frozen=True, slots=True, eq=False)
class SignalDecays:
    """One row per event: products of the decay with any hit, those of them that are long-reconstructible in
    2 < eta < 5, and the transverse momentum (MeV) of all."""

    products: Int64Array
    reconstructible: Int64Array
    pt: Float64Array

    @classmethod
    def of(cls, particles: ParticleTable) -> "SignalDecays":
        """The decays of the events of a table."""
        n = particles.n_events
        product = particles.from_signal & np.isin(np.abs(particles.pid), _STABLE)
        product &= ~np.isin(np.abs(particles.mother_pid), _STABLE)
        found = product & particles.is_long & particles.in_acceptance
        event = particles.event[product]
        x, y = (
            np.bincount(event, (particles.pt * direction(particles.phi))[product], minlength=n)
            for direction in (np.cos, np.sin)
        )
        return cls(np.bincount(event, minlength=n), np.bincount(particles.event[found], minlength=n), np.hypot(x, y))


def made_by_signal(tracks: TrackTable, particles: ParticleTable) -> Mask:
    """Whether particles of the signal, all together, made at least 70 % of the hits of each track."""
    keys = id_keys(tracks.event[np.repeat(np.arange(len(tracks)), tracks.n_ids)], tracks.ids)
    signal = [
        owned.key[particles.from_signal[owned.owner]] for owned in (particles.velo, particles.ut, particles.scifi)
    ]
    shared = np.isin(keys, np.concatenate(signal))
    n_shared = np.bincount(np.repeat(np.arange(len(tracks)), tracks.n_ids)[shared], minlength=len(tracks))
    made: Mask = n_shared >= MATCHED_FRACTION * tracks.n_ids
    return made
