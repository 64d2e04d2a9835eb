"""An event that fills a bound has no flag; one more object, with all other bounds kept, flags it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.primary_vertices.collections import MAX_SEEDS
from hltnode.processing.lhcb.primary_vertices.peaks import peaks
from hltnode.processing.lhcb.secondary_vertices.collections import (
    MAX_PAIRS_PER_EVENT,
    MAX_V0_PAIRS_PER_EVENT,
    MAX_VERTICES_PER_EVENT,
    TrackUse,
    VertexKind,
)
from hltnode.processing.lhcb.secondary_vertices.find_pairs import find_pairs
from hltnode.processing.lhcb.secondary_vertices.fit_vertices import fit_vertices
from hltnode.processing.lhcb.secondary_vertices.pair_v0s import pair_v0s
from hltnode.processing.lhcb.ut.collections import MAX_TRACKS_PER_EVENT as MAX_UT_TRACKS
from hltnode.processing.lhcb.ut.select_tracks import select_tracks
from hltnode.processing.lhcb.velo.collections import HIT_PADDING, SeedFate
from hltnode.processing.lhcb.velo.tracking.consolidate_tracks import consolidate_tracks
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.lhcb.fit_chain import KALMAN, VERTICES, run
from tests.processing.lhcb.tracks.kalman.toy_tracks import ToyEvents, tracks_from

Columns = dict[str, NDArray[Any]]
LIMITS = BatchLimits(events=1, meps=1, input_bytes=1 << 16, rows=1)
NO_HIT = 0xFFFF
VELO_PLACES = 10


def velo_tracks(n: int) -> Columns:
    """Three-hit tracks in an event with 20 clusters, which has 10 places for tracks."""
    clusters = 2 * VELO_PLACES
    return {
        "velo_clusters.offset": np.array([0, clusters + HIT_PADDING]),
        "velo_clusters.bound": np.array([clusters]),
        "velo_seeds.count": np.array([n]),
        "velo_seeds.hits": np.tile([2, 1, 0, int(SeedFate.SEED_ACCEPTED)], n),
    }


def ut_tracks(n: int) -> Columns:
    """Continuations without a common hit."""
    return {
        "velo_clusters.offset": np.array([0, 2 * n]),
        "velo_tracks.count": np.array([n]),
        "ut_candidates.hit_count": np.full(n, 3),
        "ut_candidates.hits": np.full(4 * n, NO_HIT),
    }


def peaks_in_z(n: int) -> Columns:
    """Six tracks from each of n places along the beam."""
    z = np.repeat(-300.0 + 8.0 * np.arange(n), 6)
    return {
        "velo_clusters.offset": np.array([0, 2 * len(z)]),
        "pv_tracks.count": np.array([len(z)]),
        "pv_tracks.z": z,
        "pv_tracks.tx": np.full(len(z), 0.3),
        "pv_tracks.weight": np.full(len(z), 400.0),
    }


def pairs(n: int) -> Columns:
    """64 muons from one point make 2016 pairs; a displaced track makes pairs with those that are displaced too."""
    muons, displaced = 64, n - 64 * 63 // 2
    both = int(TrackUse.FOR_DIMUON | TrackUse.FOR_DISPLACED)
    use = [both] * displaced + [int(TrackUse.FOR_DIMUON)] * (muons - displaced) + [int(TrackUse.FOR_DISPLACED)]
    slopes = np.linspace(0.05, 0.2, muons + 1)
    return {
        "vertex_tracks.count": np.array([muons + 1]),
        "vertex_tracks.track": np.arange(muons + 1),
        "vertex_tracks.use": np.array(use),
        "vertex_tracks.tx": slopes,
        "vertex_tracks.ty": slopes**2,
        "vertex_tracks.ip_chi2": np.full(muons + 1, 100.0),
    }


def vertices(n: int) -> Columns:
    """The same pair of muons n times."""
    given = ToyEvents([tracks_from(np.random.default_rng(6), (1.0, 2.0, 40.0), 2)], [[(0.02, -0.03, 5.0)]], muons=True)
    fitted = run((*KALMAN, *VERTICES), given.columns(), 1, given.sample.limits)
    assert fitted["two_track_vertices.count"].tolist() == [1]
    wanted = ("long_tracks.", "pvs.", "velo_field", "velo_clusters.offset")
    return {
        **{name: column for name, column in fitted.items() if name.startswith(wanted)},
        "vertex_pairs.count": np.array([n]),
        "vertex_pairs.tracks": np.tile(fitted["vertex_pairs.tracks"][:2], n),
        "vertex_pairs.kind": np.full(n, int(VertexKind.VERTEX_DIMUON)),
    }


def v0_pairs(n: int) -> Columns:
    """A K0S, and n others that have a track in common with each other but not with the first."""
    return {
        "two_track_vertices.count": np.array([n + 1]),
        "two_track_vertices.tracks": np.array([[0, 1], *([2, 3 + i] for i in range(n))]),
        "two_track_vertices.kind": np.full(n + 1, int(VertexKind.VERTEX_KS)),
        "two_track_vertices.px": np.linspace(0.0, 500.0, n + 1),
        "two_track_vertices.pz": np.full(n + 1, 1e4),
    }


CASES: dict[str, tuple[Algorithm, Callable[[int], Columns], int]] = {
    "velo_tracks": (consolidate_tracks, velo_tracks, VELO_PLACES),
    "ut_tracks": (select_tracks, ut_tracks, MAX_UT_TRACKS),
    "pv_seeds": (peaks, peaks_in_z, MAX_SEEDS),
    "vertex_pairs": (find_pairs, pairs, MAX_PAIRS_PER_EVENT),
    "two_track_vertices": (fit_vertices, vertices, MAX_VERTICES_PER_EVENT),
    "v0_pairs": (pair_v0s, v0_pairs, MAX_V0_PAIRS_PER_EVENT),
}


@pytest.mark.parametrize("collection", CASES)
@pytest.mark.parametrize("common", [False, True], ids=["", "common"])
def test_one_object_more_than_a_bound_flags_the_event(collection: str, common: bool) -> None:
    algorithm, made, most = CASES[collection]
    for n in (most - 1, most, most + 1):
        columns = run_algorithms([algorithm], made(n), 1, LIMITS, on_cpu(common=common))
        assert columns[f"{collection}.count"][0] == min(n, most)
        assert columns["events.flags"][0] == (EventFlag.OVERFLOW if n > most else 0), n
