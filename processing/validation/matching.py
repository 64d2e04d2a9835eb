"""Which particle a reconstructed track belongs to: the 70 % rule (hlt1-allen.md 6.1, reconstruction-facts.md 9)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.validation.particles import ParticleTable
from hltnode.protocol.lhcb_id import without_orientation

# A track belongs to a particle that made at least this part of its hits.
MATCHED_FRACTION = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class TrackMatches:
    """The (track, particle) pairs of an event that belong together; a track may match several particles.

    track, particle: i64[n] rows; purity: hits of the particle on the track / hits of the track; hit_efficiency: hits
    of the particle on the track / hits of the particle.
    """

    track: NDArray[np.int64]
    particle: NDArray[np.int64]
    purity: NDArray[np.float64]
    hit_efficiency: NDArray[np.float64]


def match_velo_tracks(tracks: Sequence[NDArray[np.uint32]], particles: ParticleTable) -> TrackMatches:
    """Match VELO tracks, each an array of LHCbIDs, with the particles of the event.

    Orientation bits are left out: clusters of super-pixels have none while truth made for retina clusters does, and no
    two clusters of an event differ by them alone (reconstruction-facts.md 1.2).
    """
    n_track_hits = np.array([len(track) for track in tracks], dtype=np.int64)
    hit_track = np.repeat(np.arange(len(tracks)), n_track_hits)
    hit_ids = np.concatenate([np.asarray(track, dtype=np.uint32) for track in tracks] or [np.empty(0, np.uint32)])
    hit_ids = without_orientation(hit_ids)
    first = np.searchsorted(particles.velo_ids, hit_ids, side="left")
    owners = np.searchsorted(particles.velo_ids, hit_ids, side="right") - first
    # One row for each owner of each hit: row k of a hit is the k-th of the equal ids in the sorted table.
    rank = np.arange(owners.sum()) - np.repeat(np.cumsum(owners) - owners, owners)
    particle_of_hit = particles.velo_owner[np.repeat(first, owners) + rank]
    n_particles = max(len(particles), 1)
    pair, shared_hits = np.unique(np.repeat(hit_track, owners) * n_particles + particle_of_hit, return_counts=True)
    track, particle = np.divmod(pair, n_particles)
    purity = shared_hits / n_track_hits[track]
    matched = purity >= MATCHED_FRACTION
    return TrackMatches(
        track=track[matched],
        particle=particle[matched],
        purity=purity[matched],
        hit_efficiency=(shared_hits / particles.n_velo_hits[particle])[matched],
    )
