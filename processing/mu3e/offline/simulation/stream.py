"""A stream of pixel hits: stopped muons that decay, noise, and decays of a kind that is wanted.

The stream is made in chunks of sub-slices, each with random numbers of its own, so any part of it can be made, in any
order, with the same hits.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.mu3e.detector_constants import SUB_SLICE_NS
from hltnode.processing.mu3e.geometry.sensor_table import SOURCES, sensors, source_of_sensors
from hltnode.processing.mu3e.offline.simulation.decays import Products, products_of, stopping_points
from hltnode.processing.mu3e.offline.simulation.flight import Crossings, fly
from hltnode.protocol.mu3e.hit_banks import (
    HIT,
    NO_PARTICLE,
    PIXELS,
    TRUE_DECAY,
    TRUE_ID,
    TRUE_PARTICLE,
    DecayKind,
    bank_order,
)

CHUNK = 64
"""Sub-slices that are made together, which bounds the cost of NumPy's calls."""
IDS_OF_SUB_SLICE = 1024
"""Particles of a sub-slice have ids from its number times this on, in 32 bits."""
TIME_SPREAD = 3.0
"""ns, standard deviation of the time of a hit; a choice of this simulation, after the correction of time walk."""
OVER_THRESHOLD = (500.0, 120.0)
"""ns, mean and standard deviation; a choice of this simulation, as no trigger reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """muon_rate: stopped muons in Hz. efficiency: of a sensor. noise: Hz of a pixel. bhabha: fraction of decays with a
    Bhabha electron. wanted: kind of additional decays, None: none. spacing: one of them in each such number of
    sub-slices. length: ns of a sub-slice."""

    muon_rate: float = 1e8
    efficiency: float = 0.99
    noise: float = 1.0
    bhabha: float = 1e-4
    wanted: DecayKind | None = None
    spacing: int = 4
    length: int = SUB_SLICE_NS


@dataclass(frozen=True, slots=True)
class _Chunk:
    """hits: HIT[hits] by sub-slice, source, and in the order of banks. ids: u32[hits]. place: i64[hits], the sub-slice
    from -1, the last one of the chunk before, times SOURCES, plus the source. particles, decays, and their sub-slices.
    """

    hits: NDArray[np.void]
    ids: NDArray[np.uint32]
    place: NDArray[np.int64]
    particles: NDArray[np.void]
    decays: NDArray[np.void]
    particle_slice: NDArray[np.int64]
    decay_slice: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SubSlice:
    """HIT[hits] and u32[hits], ids of particles, by source; TRUE_PARTICLE[particles]; TRUE_DECAY[decays]."""

    hits: tuple[NDArray[np.void], ...]
    ids: tuple[NDArray[np.uint32], ...]
    particles: NDArray[np.void]
    decays: NDArray[np.void]


class HitStream:
    """The sub-slices of a stream, numbered from 0 on."""

    def __init__(self, conditions: Conditions, seed: int) -> None:
        self.conditions = conditions
        self._seed = seed
        self._sources = source_of_sensors()
        self._chunk = lru_cache(maxsize=4)(self._made)

    def sub_slice(self, number: int) -> SubSlice:
        """The hits and the truth of a sub-slice. Hits before the start of the stream are left out."""
        of, inside = divmod(number, CHUNK)
        chunks = [(self._chunk(of), inside)]
        if inside == 0 and of:
            chunks.insert(0, (self._chunk(of - 1), CHUNK))
        if inside == CHUNK - 1:
            chunks.append((self._chunk(of + 1), -1))
        hits, ids = [], []
        for source in range(SOURCES):
            parts = [_part(chunk, place * SOURCES + source) for chunk, place in chunks]
            joined = np.concatenate([part for part, _ in parts])
            order = bank_order(joined)
            hits.append(joined[order])
            ids.append(np.concatenate([part for _, part in parts])[order])
        own = chunks[1 if inside == 0 and of else 0][0]
        return SubSlice(
            tuple(hits),
            tuple(ids),
            own.particles[own.particle_slice == inside],
            own.decays[own.decay_slice == inside],
        )

    def _made(self, chunk: int) -> _Chunk:
        conditions = self.conditions
        rng = np.random.default_rng((self._seed, chunk))
        span = CHUNK * conditions.length
        kinds, times = self._decays(rng, chunk)
        products = products_of(rng, kinds)
        vertices = stopping_points(rng, len(kinds))
        crossings = fly(rng, vertices[products.decay], products.momentum, products.charge)
        seen = rng.random(len(crossings.particle)) < conditions.efficiency
        hit_times = times[products.decay][crossings.particle] + crossings.time + rng.normal(0.0, TIME_SPREAD, len(seen))
        n_noise = rng.poisson(len(sensors()) * PIXELS**2 * conditions.noise * span * 1e-9)
        whole = np.concatenate([np.floor(hit_times[seen]), np.floor(rng.uniform(0.0, span, n_noise))]).astype(np.int64)
        hits = np.zeros(len(whole), HIT)
        hits["sensor"] = np.concatenate([crossings.sensor[seen], rng.integers(0, len(sensors()), n_noise)])
        hits["column"] = np.concatenate([crossings.column[seen], rng.integers(0, PIXELS, n_noise)])
        hits["row"] = np.concatenate([crossings.row[seen], rng.integers(0, PIXELS, n_noise)])
        hits["over_threshold"] = np.clip(rng.normal(*OVER_THRESHOLD, len(hits)), 50, 4095)
        sub_slice, hits["time"] = np.divmod(whole, conditions.length)
        particles, particle_slice = self._particles(chunk, kinds, times, vertices, products, crossings, seen)
        ids = np.concatenate([particles["id"][crossings.particle[seen]], np.full(n_noise, NO_PARTICLE)]).astype(TRUE_ID)
        place = sub_slice * SOURCES + self._sources[hits["sensor"]]
        order = np.argsort(place, kind="stable")
        decays = np.zeros(len(kinds), TRUE_DECAY)
        decay_slice = (times // conditions.length).astype(np.int64)
        decays["kind"], decays["time"] = kinds, times - decay_slice * conditions.length
        decays["vertex"] = vertices
        decays["particles"] = np.bincount(products.decay, minlength=len(kinds))
        decays["id"] = particles["id"][np.searchsorted(products.decay, np.arange(len(kinds)))]
        return _Chunk(hits[order], ids[order], place[order], particles, decays, particle_slice, decay_slice)

    def _decays(self, rng: np.random.Generator, chunk: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Kinds and times in ns since the start of the chunk, by time."""
        conditions = self.conditions
        span = CHUNK * conditions.length
        n = rng.poisson(conditions.muon_rate * span * 1e-9)
        kinds = np.where(rng.random(n) < conditions.bhabha, DecayKind.BHABHA, DecayKind.MICHEL).astype(np.int64)
        times = rng.uniform(0.0, span, n)
        if conditions.wanted is not None:
            number = np.arange(CHUNK)
            here = number[(chunk * CHUNK + number) % conditions.spacing == 0]
            kinds = np.concatenate([kinds, np.full(len(here), conditions.wanted, np.int64)])
            times = np.concatenate([times, (here + rng.random(len(here))) * conditions.length])
        order = np.argsort(times, kind="stable")
        return kinds[order], times[order]

    def _particles(
        self,
        chunk: int,
        kinds: NDArray[np.int64],
        times: NDArray[np.float64],
        vertices: NDArray[np.float64],
        products: Products,
        crossings: Crossings,
        seen: NDArray[np.bool_],
    ) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        n = len(products.decay)
        made = np.zeros(n, TRUE_PARTICLE)
        of = (times[products.decay] // self.conditions.length).astype(np.int64)
        place = np.arange(n) - np.searchsorted(of, of)
        if n and place.max() >= IDS_OF_SUB_SLICE:
            raise ValueError(
                f"{place.max() + 1} particles in a sub-slice, at most {IDS_OF_SUB_SLICE} have ids: choose a lower rate "
                "of muons or shorter sub-slices"
            )
        made["id"] = (((chunk * CHUNK + of) * IDS_OF_SUB_SLICE + place) % (1 << 32)).astype(TRUE_ID)
        first = np.searchsorted(products.decay, np.arange(len(kinds)))
        made["decay"] = made["id"][first[products.decay]]
        made["charge"], made["momentum"] = products.charge, products.momentum
        made["vertex"] = vertices[products.decay]
        made["time"] = times[products.decay] - of * self.conditions.length
        made["hits"] = np.bincount(crossings.particle[seen], minlength=n)
        outward = seen & crossings.outward
        layers = np.zeros(n, np.int64)
        np.bitwise_or.at(layers, crossings.particle[outward], 1 << crossings.layer[outward])
        made["layers"] = layers
        behind = np.bincount(crossings.particle[seen & ~crossings.outward], minlength=n)
        made["recurls"] = np.minimum(behind, 255)
        return made, of


def _part(chunk: _Chunk, place: int) -> tuple[NDArray[np.void], NDArray[np.uint32]]:
    first, last = np.searchsorted(chunk.place, [place, place + 1])
    return chunk.hits[first:last], chunk.ids[first:last]
