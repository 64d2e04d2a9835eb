"""Truth banks of the whole detector: which particle made which hits, and which are reconstructible
(docs/formats/truth-banks.md)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.simulation.generation.collisions import SimulatedCollisions
from hltnode.processing.lhcb.offline.simulation.response.ecal_response import Arrivals, EcalResult
from hltnode.processing.lhcb.offline.simulation.velo_generator import (
    MIN_MODULES,
    collision_vertices,
    n_modules,
    n_visible,
)
from hltnode.processing.offline.arrays import Int64Array, Mask
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.sorting import distinct
from hltnode.protocol.lhcb.lhcb_id import scifi_channel, ut_channel
from hltnode.protocol.lhcb.truth import encode_vertices
from hltnode.protocol.lhcb.truth_columns import encode_particles_of_events
from hltnode.protocol.lhcb.truth_ecal import SHOWER, encode_ecal_truth
from hltnode.protocol.raw_data.raw_bank import RawBank

# Of the four layers of the UT, and of each station of the SciFi.
_STEREO_LAYERS = (1, 2)
_N_STATIONS = 3


@dataclass(frozen=True, slots=True, eq=False)
class HitLists:
    """Hits in any order: the row `particle` i64[n] of the particle that made it, and its `lhcb_id` u32[n]."""

    particle: Int64Array
    lhcb_id: NDArray[np.uint32]

    def by_particle(self, n_particles: int) -> tuple[NDArray[np.uint32], Int64Array]:
        """All ids by rising particle, and their number for each particle."""
        order = np.argsort(self.particle, kind="stable")
        return self.lhcb_id[order], np.bincount(self.particle, minlength=n_particles)


def truth_of_chunk(
    event: Int64Array,
    key: Int64Array,
    particles: ParticleColumns,
    collisions: Sequence[SimulatedCollisions],
    velo: HitLists,
    ut: HitLists,
    scifi: HitLists,
) -> list[list[RawBank]]:
    """The banks of particles (32), collisions (33) and the sample (34) of each event.

    Hits refer to rows of `particles`, with their `event` (rising) and `key` in the event; the first rows of each event
    are those of its `collisions`, in their order. Particles without hits are left out.
    """
    n = len(event)
    lists = [hits.by_particle(n) for hits in (velo, ut, scifi)]
    has_velo = n_modules(velo.particle, velo.lhcb_id, n) >= MIN_MODULES
    has_ut, has_scifi = _has_ut(ut, n), _has_scifi(scifi, n)
    columns: dict[str, NDArray[np.generic]] = {
        **particles.truth(key),
        "is_long": has_velo & has_scifi,
        "is_down": has_ut & has_scifi,
        "has_velo": has_velo,
        "has_ut": has_ut,
        "has_scifi": has_scifi,
    }
    edges = np.searchsorted(event, np.arange(len(collisions) + 1))
    vertices = [
        collision_vertices(collision, has_velo[first:last])
        for (first, last), collision in zip(itertools.pairwise(edges.tolist()), collisions, strict=True)
    ]
    columns["n_pvs"] = np.array([n_visible(of_event) for of_event in vertices])[event]
    seen = np.any([counts > 0 for _, counts in lists], axis=0)
    particle_banks = encode_particles_of_events(
        {name: values[seen] for name, values in columns.items()},
        [(ids, counts[seen]) for ids, counts in lists],
        np.bincount(event[seen], minlength=len(collisions)).tolist(),
    )
    return [
        [*of_event, encode_vertices(its_vertices), collision.truth]
        for of_event, its_vertices, collision in zip(particle_banks, vertices, collisions, strict=True)
    ]


# Less is not listed, MeV.
_LEAST_VISIBLE = 100.0


def ecal_truth_of_chunk(
    arrivals: Arrivals, result: EcalResult, depth: float, key: Int64Array, n_events: int
) -> list[list[RawBank]]:
    """The bank of the calorimeter (35) of each event; `depth` of the shower maximum behind the front (mm), `key` of the
    rows that `arrivals` refer to."""
    chosen = result.is_inside & (result.visible > _LEAST_VISIBLE)
    it = arrivals.take(chosen)
    showers = np.zeros(len(it), SHOWER)
    showers["key"] = np.where(it.row < 0, -1, key[it.row])
    showers["pid"], showers["energy"], showers["visible"] = it.pid, it.energy, result.visible[chosen]
    showers["x"], showers["y"] = it.x + depth * it.tx, it.y + depth * it.ty
    edges = np.searchsorted(it.event, np.arange(n_events + 1)).tolist()
    return [[encode_ecal_truth(showers[a:b])] for a, b in itertools.pairwise(edges)]


def _has_ut(hits: HitLists, n: int) -> Mask:
    """A hit in an x layer and one in a stereo layer."""
    layer = ut_channel(hits.lhcb_id).layer
    stereo = (layer == _STEREO_LAYERS[0]) | (layer == _STEREO_LAYERS[1])
    both: Mask = _n_distinct(hits.particle, stereo.astype(np.int64), n) == 2
    return both


def _has_scifi(hits: HitLists, n: int) -> Mask:
    """In each station a hit in an x layer and one in a stereo layer."""
    channel = scifi_channel(hits.lhcb_id)
    stereo = (channel.layer == _STEREO_LAYERS[0]) | (channel.layer == _STEREO_LAYERS[1])
    everywhere: Mask = _n_distinct(hits.particle, 2 * channel.station.astype(np.int64) + stereo, n) == 2 * _N_STATIONS
    return everywhere


def _n_distinct(particle: Int64Array, value: Int64Array, n: int) -> Int64Array:
    """How many distinct values (0..63) each particle has."""
    return np.bincount(distinct(particle << 6 | value) >> 6, minlength=n)
