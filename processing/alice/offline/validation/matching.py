"""Which particle a track belongs to, and which particles a tracker can find: pure functions of cluster numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.alice.tpc_banks import N_ROWS, N_SLICES

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MIN_ROWS = 30
"""Rows with own clusters of a findable particle."""
MIN_PT = 0.15
"""GeV/c of a findable particle."""
LEVELS = (0.5, 0.7, 0.9)
"""Fractions of the clusters of a track that must come from one particle. The second one is that of the results."""
MATCH_LEVEL = LEVELS[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The particle with the most clusters of each track.

    particle: i64[tracks], -1 for a track of noise alone or without clusters; of equal ones the first in the list.
    fraction: f64[tracks], its share of the clusters of the track.
    """

    particle: Integers
    fraction: Floats


def match_tracks(n_clusters: Integers, clusters: Integers, of_clusters: Integers) -> Matches:
    """The particle of each track.

    n_clusters: i64[tracks]; clusters: i64[sum], numbers of the clusters, track by track; of_clusters: the particle of
    each cluster of the event, -1 for noise. Raises ValueError for a cluster that the event does not have, or for other
    numbers of clusters than the tracks tell of.
    """
    n_tracks = len(n_clusters)
    if len(clusters) != int(n_clusters.sum()):
        raise ValueError(f"{len(clusters)} clusters of tracks, {int(n_clusters.sum())} expected")
    if len(clusters) and not (clusters.min() >= 0 and clusters.max() < len(of_clusters)):
        raise ValueError(f"a track has cluster {clusters.max()}, the event has {len(of_clusters)}")
    track = np.repeat(np.arange(n_tracks), n_clusters)
    particle = of_clusters[clusters]
    real = particle >= 0
    n_particles = int(of_clusters.max(initial=0)) + 1
    pairs, counts = np.unique(track[real] * n_particles + particle[real], return_counts=True)
    owner, candidate = np.divmod(pairs, n_particles)
    order = np.lexsort((-candidate, counts, owner))
    last = order[np.flatnonzero(np.diff(owner[order], append=-1))]
    best, most = np.full(n_tracks, -1), np.zeros(n_tracks)
    best[owner[last]], most[owner[last]] = candidate[last], counts[last]
    return Matches(particle=best, fraction=most / np.maximum(n_clusters, 1))


def rows_of_particles(of_clusters: Integers, plane: Integers, n_particles: int) -> Integers:
    """Rows in which each particle has own clusters, i64[particles, slices].

    plane: slice * 159 + row of each cluster. Two clusters of a particle in one row of a slice count once.
    """
    real = of_clusters >= 0
    keys = np.unique(of_clusters[real] * (N_SLICES * N_ROWS) + plane[real])
    counts = np.bincount(keys // N_ROWS, minlength=n_particles * N_SLICES)
    return counts.reshape(n_particles, N_SLICES).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Tracks against references at one level.

    found: bool[references], whether a track represents the reference. fakes, clones: bool[tracks]: tracks without a
    particle, and tracks of a particle that an earlier track of the list represents already.
    """

    found: NDArray[np.bool_]
    fakes: NDArray[np.bool_]
    clones: NDArray[np.bool_]


def score(matches: Matches, place: Integers, references: Integers, level: float) -> Score:
    """Compare tracks with references.

    place: i64[tracks], what a track would represent: a particle, or a particle in a slice. references: the findable
    ones, as numbers of the same kind.
    """
    is_matched = (matches.particle >= 0) & (matches.fraction >= level)
    clones = is_matched.copy()
    clones[np.flatnonzero(is_matched)[np.unique(place[is_matched], return_index=True)[1]]] = False
    return Score(found=np.isin(references, place[is_matched]), fakes=~is_matched, clones=clones)
