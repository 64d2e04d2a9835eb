"""An event that fills a bound has no flag; one more object, with all other bounds kept, flags it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.ut_groups import UtSectorGroups
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
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
from hltnode.processing.lhcb.tracks.long.collections import MAX_SEEDS_PER_EVENT, MAX_X_SEEDS_PER_EVENT
from hltnode.processing.lhcb.tracks.matching.seed_in_x import seed_in_x
from hltnode.processing.lhcb.tracks.matching.seed_in_y import seed_in_y
from hltnode.processing.lhcb.tracks.matching.select_seeding_hits import select_seeding_hits
from hltnode.processing.lhcb.ut.collections import GROUP_STRIDE
from hltnode.processing.lhcb.ut.collections import MAX_TRACKS_PER_EVENT as MAX_UT_TRACKS
from hltnode.processing.lhcb.ut.search_tracks import search_tracks
from hltnode.processing.lhcb.ut.select_tracks import select_tracks
from hltnode.processing.lhcb.velo.collections import HIT_PADDING, SeedFate
from hltnode.processing.lhcb.velo.tracking.consolidate_tracks import consolidate_tracks
from hltnode.processing.lhcb.velo.tracking.follow_tracks import follow_tracks
from hltnode.processing.lhcb.velo.tracking.search_by_triplet import search_by_triplet
from hltnode.processing.lhcb.velo.tracking.sort_by_phi import sort_by_phi
from tests.processing.chains.reference import Reference
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.lhcb.fit_chain import KALMAN, VERTICES, run
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.tracks.kalman.toy_tracks import ToyEvents, tracks_from
from tests.processing.lhcb.tracks.long.matching_chain import MatchingEvent, given_columns
from tests.processing.lhcb.tracks.long.toy_events import TABLES, Particle, particle, scifi_hits
from tests.processing.lhcb.ut import search_oracle
from tests.processing.lhcb.ut.ut_chain import Detector as UtDetector
from tests.processing.lhcb.whole_chain import reference_of

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


def velo_candidates(n: int) -> Columns:
    """n hits on one plane, and three more that continue the line through each of them; 20 places for clusters."""
    geometry = VeloGeometry.builtin()
    pairs = np.array([14, *[13] * n, 12, 11])
    z = geometry.module_z[2 * pairs]
    slopes = 0.1 + np.array([0.0, *1e-6 * np.arange(n), 0.0, 0.0])
    clusters = 2 * VELO_PLACES
    return {
        "velo_geometry": np.frombuffer(geometry.to_bytes(), np.float32),
        "velo_clusters.offset": np.array([0, clusters + HIT_PADDING]),
        "velo_clusters.bound": np.array([clusters]),
        "velo_unsorted.count": np.array([len(pairs)]),
        "velo_unsorted.x": slopes * z,
        "velo_unsorted.y": np.zeros(len(pairs)),
        "velo_unsorted.z": z,
        "velo_unsorted.phi": np.zeros(len(pairs)),
        "velo_unsorted.id": np.arange(len(pairs)),
        "velo_unsorted.module_pair": pairs,
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


ONE, OTHER = particle(0.05, 0.05, 2e4, 1), particle(-0.15, 0.05, 2e4, 1)
"""Two particles in the upper half of the SciFi tracker, far from each other."""
ALL_CURVES = seed_in_x.with_constants({"max_shared_hits": 6})
"""Keeps the curves with common hits."""
MAX_ZONE_HITS = next(int(it.value) for it in seed_in_x.constants if it.name == "max_zone_hits")
LAYERS_OF_PAIRS = (8, 11)
"""The x layers of the last station, in which curves begin with a pair of hits."""
X_SEED_COLUMNS = tuple(f"x_seeds.{name}" for name in ("a", "b", "c", "score", "hit_count", "hits"))


def hits_of(*particles: Particle) -> list[tuple[int, float]]:
    """(zone, x at y = 0) of the hits of particles."""
    return [hit for one in particles for hit in scifi_hits(np.random.default_rng(1), one, efficiency=1.0)]


def mirrored(one: Particle) -> Particle:
    """The same particle in the lower half."""
    return replace(one, parameters=one.parameters * (1.0, 1.0, 1.0, -1.0, -1.0))


def hits_of_seeding(hits: Sequence[tuple[int, float]]) -> Columns:
    """The columns of an event with these SciFi hits."""
    hits = sorted(hits)
    nothing = np.zeros(0, np.float32)
    event = MatchingEvent(
        scifi_x=np.array([x for _, x in hits], np.float32),
        scifi_offset=np.searchsorted([zone for zone, _ in hits], np.arange(25)),
        velo=dict.fromkeys(("x", "y", "tx", "ty", "backward"), nothing),
        ut=dict.fromkeys(("x", "z", "y_begin", "y_end"), nothing),
    )
    return given_columns([event], TABLES)


def x_curves(n: int) -> Columns:
    """Copies of the hits in which curves begin: each pair of a first and a last hit is one, so two for a first hit."""
    hits = hits_of(ONE, mirrored(ONE), *([OTHER] if n % 2 else []))
    for one, firsts in ((mirrored(ONE), MAX_ZONE_HITS), (ONE, n // 2 - MAX_ZONE_HITS)):
        for layer, times in zip(LAYERS_OF_PAIRS, (firsts, 2), strict=True):
            hits += (times - 1) * [hit for hit in hits_of(one) if hit[0] // 2 == layer]
    return hits_of_seeding(hits)


@cache
def two_curves_with_three_seeds() -> Columns:
    """The stereo hits of the first curve are those of two tracks."""
    a, b, c, y, ty = ONE.parameters
    below = replace(ONE, parameters=np.array([a, b, c, 0.6 * y, 0.6 * ty]))
    hits = [*hits_of(OTHER, ONE), *(hit for hit in hits_of(below) if hit[0] // 2 % 4 in (1, 2))]
    columns = run_algorithms((select_seeding_hits, seed_in_x, seed_in_y), hits_of_seeding(hits), 1, LIMITS)
    assert columns["x_seeds.count"].tolist() == [2]
    assert columns["scifi_seeds.count"].tolist() == [3]
    wanted = ("seeding_tables", "seeding_hits.", "x_seeds.")
    return {name: column for name, column in columns.items() if name.startswith(wanted)}


def seeds_of_curves(n: int) -> Columns:
    """Copies of two curves: the first one gives one seed, the other one two."""
    columns = two_curves_with_three_seeds()
    twice = max(0, n - MAX_X_SEEDS_PER_EVENT)
    rows = [0] * (n - 2 * twice) + [1] * twice
    copied = {name: columns[name].reshape(MAX_X_SEEDS_PER_EVENT, -1)[rows] for name in X_SEED_COLUMNS}
    return {**columns, **copied, "x_seeds.count": np.array([len(rows)])}


CASES: dict[str, tuple[Sequence[Algorithm], Callable[[int], Columns], int]] = {
    "velo_tracks.count": ([consolidate_tracks], velo_tracks, VELO_PLACES),
    "velo_tracks.candidate_count": ([sort_by_phi, search_by_triplet], velo_candidates, VELO_PLACES),
    "velo_tracks.candidate_count of velo_simd": ([sort_by_phi, follow_tracks], velo_candidates, VELO_PLACES),
    "x_seeds.count": ([select_seeding_hits, ALL_CURVES], x_curves, MAX_X_SEEDS_PER_EVENT),
    "scifi_seeds.count": ([seed_in_y], seeds_of_curves, MAX_SEEDS_PER_EVENT),
    "ut_tracks.count": ([select_tracks], ut_tracks, MAX_UT_TRACKS),
    "pv_seeds.count": ([peaks], peaks_in_z, MAX_SEEDS),
    "vertex_pairs.count": ([find_pairs], pairs, MAX_PAIRS_PER_EVENT),
    "two_track_vertices.count": ([fit_vertices], vertices, MAX_VERTICES_PER_EVENT),
    "v0_pairs.count": ([pair_v0s], v0_pairs, MAX_V0_PAIRS_PER_EVENT),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("common", [False, True], ids=["", "common"])
def test_one_object_more_than_a_bound_flags_the_event(case: str, common: bool) -> None:
    algorithms, made, most = CASES[case]
    for n in (most - 1, most, most + 1):
        columns = run_algorithms(algorithms, made(n), 1, LIMITS, on_cpu(common=common))
        assert columns[case.partition(" ")[0]][0] == min(n, most)
        assert columns["events.flags"][0] == (EventFlag.OVERFLOW if n > most else 0), n


@pytest.mark.parametrize("common", [False, True], ids=["", "common"])
def test_one_hit_more_than_a_zone_may_have_flags_the_event_and_leaves_its_half_without_curves(common: bool) -> None:
    tracks = hits_of(ONE, mirrored(OTHER))
    zone = 2 * 5 + 1  # of a stereo layer, in the upper half
    for n in (MAX_ZONE_HITS - 1, MAX_ZONE_HITS, MAX_ZONE_HITS + 1):
        more = n - sum(hit[0] == zone for hit in tracks)
        given = hits_of_seeding([*tracks, *((zone, x) for x in np.linspace(-2500.0, -2400.0, more))])
        columns = run_algorithms([select_seeding_hits, seed_in_x], given, 1, LIMITS, on_cpu(common=common))
        assert columns["x_seeds.count"][0] == (2 if n <= MAX_ZONE_HITS else 1)
        assert columns["events.flags"][0] == (0 if n <= MAX_ZONE_HITS else EventFlag.OVERFLOW), n


@cache
def event_with_ut() -> Reference:
    mep = encode_mep(CHAIN.with_sequence("forward"), [list(banks) for banks in full_events(1, 5)])
    return reference_of(mep, None, "forward")


def pairs_of(track: int, columns: Columns) -> int:
    """Number of pairs of UT hits that are tried for a VELO track, by the oracle of the search."""
    settings, detector = search_oracle.Settings(), UtDetector.builtin()
    n_hits = int(columns["ut_hits.count"][0])
    offset = columns["ut_hits.group_offset"].reshape(-1, GROUP_STRIDE)[0].astype(int)
    layer_of_group = np.searchsorted(UtSectorGroups.of(detector.ut).first_group, np.arange(128), side="right") - 1
    names = ("x", "z", "y_begin", "y_end", "weight")
    hits = search_oracle.OracleHits(
        **{name: columns[f"ut_hits.{name}"][:n_hits].astype(np.float64) for name in names},
        layer=np.repeat(layer_of_group, np.diff(offset, append=n_hits)),
    )
    state = search_oracle.State(track, *(float(columns[f"velo_end.{name}"][track]) for name in ("x", "y", "tx", "ty")))
    windows = [search_oracle.window(state, hits, layer, detector.tables, settings) for layer in range(4)]
    n = len(search_oracle.lines(windows, 0, 2, settings))
    found = search_oracle.candidates(windows, (0, 2, 1, 3), settings)
    with_four_hits = [search_oracle.fit_kink(hits)[0] for hits in found if len(hits) == 4]
    if min(with_four_hits, default=np.inf) > settings.three_hits_penalty:
        n += len(search_oracle.lines(windows, 3, 1, settings))
    return n


@pytest.mark.parametrize("common", [False, True], ids=["", "common"])
def test_one_pair_of_ut_hits_more_than_the_share_of_a_track_flags_the_event(common: bool) -> None:
    reference = event_with_ut()
    types = {column.name: column.dtype for column in reference.sequence.columns}
    columns = reference.given | {name: np.frombuffer(it, types[name]) for name, it in reference.made.items()}
    n_tracks = int(columns["velo_tracks.count"][0])
    most = 0
    for track in np.flatnonzero(columns["ut_candidates.hit_count"][:n_tracks])[:6]:
        n = pairs_of(int(track), columns)
        # All other tracks fly backward, and are left out.
        backward = np.ones(n_tracks, np.uint8)
        backward[track] = 0
        given = columns | {"velo_tracks.backward": backward}
        for share in (n + 1, n, n - 1):
            search = search_tracks.with_constants({"max_pairs": share * n_tracks})
            found = run_algorithms([search], given, 1, reference.limits, on_cpu(common=common))
            assert found["events.flags"][0] == (0 if share >= n else EventFlag.OVERFLOW), (track, n, share)
        most = max(most, n)
    assert most > 4
