"""Which particle a reconstructed track belongs to: the 70 % rule (docs/physics/validation.md).

A LHCbID may belong to several particles and a track may match several of them; one that matches none is a ghost.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.validation.checker.particles import OwnedIds, ParticleTable, id_keys
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.offline.arrays import Int64Array
from hltnode.protocol.lhcb.lhcb_id import FT_TYPE, UT_TYPE, VP_TYPE, detector_type

# A track belongs to a particle that made at least this fraction of its hits in each sub-detector.
MATCHED_FRACTION = 0.7
# With this number of hits in a sub-detector or fewer, any fraction is sufficient.
_FEW_HITS = 2
# A track has too few UT hits for a fraction: one of them may be of another particle.
_WRONG_UT_HITS = 1
_FIRST_HITS = 3
"""VELO hits of a particle that matter most for the track at the beam line."""

VELO, UT, SCIFI = 0, 1, 2
"""Columns of the counts of hits."""


@dataclass(frozen=True, slots=True, eq=False)
class TrackMatches:
    """The (track, particle) pairs that belong together.

    track, particle: i64[n] rows; purity: hits of the particle on the track / hits of the track, all detectors;
    hit_efficiency f64[n, 3]: the same hits / hits of the particle, for VELO, UT, SciFi (0 where it has none).
    first_hits, last_hit f64[n]: the same for the first three VELO hits of the particle, and for its last one, counted
    along its flight (A. Hennequin, thesis, table 5.3).
    """

    track: Int64Array
    particle: Int64Array
    purity: NDArray[np.float64]
    hit_efficiency: NDArray[np.float64]
    first_hits: NDArray[np.float64]
    last_hit: NDArray[np.float64]


def match_tracks(tracks: TrackTable, particles: ParticleTable) -> TrackMatches:
    """Match the tracks of a batch with the particles of the same events.

    Orientation bits of VELO ids are left out: clusters of super-pixels have none while truth made for retina clusters
    does, and no two clusters of an event differ by them alone (docs/formats/lhcb-id.md).
    """
    hit_track = np.repeat(np.arange(len(tracks)), tracks.n_ids)
    detector = np.full(len(hit_track), -1)
    for column, number in ((VELO, VP_TYPE), (UT, UT_TYPE), (SCIFI, FT_TYPE)):
        detector[detector_type(tracks.ids) == number] = column
    known = detector >= 0
    total = np.zeros((len(tracks), 3), dtype=np.int64)
    np.add.at(total, (hit_track[known], detector[known]), 1)
    keys = id_keys(tracks.event[hit_track], tracks.ids)
    n_particles = max(len(particles), 1)
    owned = (particles.velo, particles.ut, particles.scifi)
    pairs_of, rows_of = [], []
    for column, of_detector in enumerate(owned):
        chosen = detector == column
        hit, row = _owned_rows(keys[chosen], of_detector)
        pairs_of.append(hit_track[chosen][hit] * n_particles + of_detector.owner[row])
        rows_of.append(row)
    pair, which = np.unique(np.concatenate(pairs_of), return_inverse=True)
    first_hits, last_hit = _ends(particles, which[: len(rows_of[VELO])], rows_of[VELO], len(pair))
    of_detector_column = np.repeat(np.arange(3), [len(pairs) for pairs in pairs_of])
    shared = np.bincount(which * 3 + of_detector_column, minlength=3 * len(pair)).reshape(-1, 3)
    track, particle = np.divmod(pair, n_particles)
    total = total[track]
    long = (total[:, VELO] > _FEW_HITS) & (total[:, SCIFI] > _FEW_HITS)
    shared = _with_daughters(shared, total, long, pair, track * n_particles, particles.mother[particle])
    enough = (shared / np.maximum(total, 1) >= MATCHED_FRACTION) | (total <= _FEW_HITS)
    ut_fits = shared[:, UT] + _WRONG_UT_HITS >= total[:, UT]
    matched = enough[:, VELO] & enough[:, SCIFI] & (ut_fits | long)
    made = np.stack([of_detector.count for of_detector in owned], axis=1)[particle]
    return TrackMatches(
        track=track[matched],
        particle=particle[matched],
        purity=(shared.sum(axis=1) / tracks.n_ids[track])[matched],
        hit_efficiency=(shared / np.maximum(made, 1))[matched],
        first_hits=(first_hits / np.clip(made[:, VELO], 1, _FIRST_HITS))[matched],
        last_hit=last_hit[matched],
    )


def _ends(
    particles: ParticleTable, pair: Int64Array, row: Int64Array, n_pairs: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each pair, the number of the particle's first VELO hits on the track, and of its last hit.

    pair, row: of each shared VELO hit, its pair and its row in the table of owned ids.
    """
    owned = particles.velo
    # Ids rise with the number of the sensor, and sensors are numbered along the beam.
    order = np.argsort(owned.owner, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(owned.count) - owned.count, owned.count)
    of_owner = owned.count[owned.owner]
    place = np.where(particles.eta[owned.owner] < 0, of_owner - 1 - rank, rank)
    first, last = (place < _FIRST_HITS)[row], (place == of_owner - 1)[row]
    counts = [np.bincount(pair[of], minlength=n_pairs).astype(np.float64) for of in (first, last)]
    return counts[0], counts[1]


def _owned_rows(keys: NDArray[np.uint64], owned: OwnedIds) -> tuple[Int64Array, Int64Array]:
    """One row for each owner of each hit: the hit, the row in the table of owned ids."""
    first = np.searchsorted(owned.key, keys, side="left")
    n_owners = np.searchsorted(owned.key, keys, side="right") - first
    hit = np.repeat(np.arange(len(keys)), n_owners)
    # Row k of a hit is the k-th of the equal keys in the sorted table.
    rank = np.arange(len(hit)) - np.repeat(np.cumsum(n_owners) - n_owners, n_owners)
    return hit, first[hit] + rank


def _with_daughters(
    shared: Int64Array,
    total: Int64Array,
    long: NDArray[np.bool_],
    pair: Int64Array,
    first_pair_of_track: Int64Array,
    mother: Int64Array,
) -> Int64Array:
    """The shared hits of a long track, where a mother seen in the VELO and one daughter seen in the SciFi count as one
    particle.

    A particle that decays or scatters in flight leaves its hits under two keys. Each daughter is joined with the mother
    alone: the hits of several daughters never add up. The mother is joined with the daughter that has most SciFi hits.
    """
    wanted = first_pair_of_track + mother
    at = np.minimum(np.searchsorted(pair, wanted), max(len(pair) - 1, 0))
    daughter = np.flatnonzero(long & (mother >= 0) & (shared[:, SCIFI] > 0))
    daughter = daughter[pair[at[daughter]] == wanted[daughter]]
    daughter = daughter[shared[at[daughter], VELO] > 0]
    # Of several daughters the one with most SciFi hits comes last, and its sum stays with the mother.
    daughter = daughter[np.argsort(shared[daughter, SCIFI], kind="stable")]
    of_mother = at[daughter]
    both = np.minimum(shared[of_mother] + shared[daughter], total[daughter])
    joined = shared.copy()
    joined[of_mother] = both
    joined[daughter] = both
    return joined
