"""Merged tracks against a sequential oracle over all pairs, a matrix of slices, and exact helices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.tpc.flags import LONG_CHAIN
from hltnode.processing.alice.tpc.merging.collections import (
    MAX_SEGMENTS,
    NO_END,
    SEGMENT_END,
)
from hltnode.processing.alice.tpc.merging.links.cut_chains import cut_chains as cut_kernel
from hltnode.processing.alice.tpc.merging.links.find_clones import find_clones
from hltnode.processing.alice.tpc.merging.links.find_turns import find_turns
from hltnode.processing.alice.tpc.merging.links.insert_segments import insert_segments
from hltnode.processing.alice.tpc.merging.links.join_segments import join_segments
from hltnode.processing.alice.tpc.merging.links.link_free_ends import link_free_ends
from hltnode.processing.alice.tpc.merging.links.link_segments import link_segments
from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.limits import BatchLimits
from tests.processing.alice.merged_events import (
    Merged,
    at_the_electrode,
    event_of_all_kinds,
    helix,
    together,
)
from tests.processing.alice.merging_oracle import (
    best_ends,
    best_turns,
    chain_numbers,
    clones_of,
    cut_chains,
    is_out_of_time,
    limits_of,
    longer_segments,
    merged_segments,
    partners_of,
    with_free_links,
    with_insertions,
)
from tests.processing.alice.toy_events import columns_of, event_of, mep_of
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms

Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def event() -> Merged:
    """Curling particles, tracks over borders and the central electrode, and a track twice."""
    return event_of_all_kinds()


def test_links_and_merged_tracks_equal_a_search_over_all_pairs(event: Merged) -> None:
    limits, c = limits_of(find_clones, "max_clone_gap", "max_clone_gap")
    t = event.tracks
    longer = longer_segments(
        limits, c["max_chi2"], event.ends[:, 0], event.bins, t["slice"], t["n_clusters"], event.rows
    )
    assert event.longer.tolist() == longer.tolist()
    clones = clones_of(longer)
    left_out = np.isin(np.arange(len(t)), list(clones.values()))
    best = best_ends(*_all(link_segments, event.ends, event.bins, left_out))
    best = with_free_links(*_all(link_free_ends, event.ends, left_out, best))
    best = with_insertions(event.ends, left_out, best, {each.name: each.value for each in insert_segments.constants})
    assert event.best.tolist() == cut_chains(*_all(cut_kernel, event.ends, clones, best)).tolist()
    expected, is_long = merged_segments(event.best, clones, event.ends, partners_in(event, clones))
    assert (event.segments, event.run.tolist(), is_long) == (
        [each for each, _ in expected],
        [run for _, run in expected],
        False,
    )
    assert event_has_links_out_of_time(event)
    sizes = [len(each) for each in event.segments]
    assert max(sizes) >= 4
    assert len(sizes) < 0.6 * len(t)


def _all(kernel: Algorithm, *arguments: Any) -> tuple[Any, ...]:
    """Limits of a kernel, arguments of its oracle, and its constants."""
    limits, c = limits_of(kernel)
    return limits, *arguments, c


def partners_in(found: Merged, clones: dict[int, int]) -> dict[int, int]:
    """The pairs of chains of an event, whose turns are those of a search over all pairs."""
    limits, c = limits_of(find_turns)
    chains = chain_numbers(found.best, clones)
    score, turn = best_turns(limits, found.ends, found.bins, chains, c)
    assert found.turn_score.tolist() == score.tolist()
    assert found.turn_chain.tolist() == turn.tolist()
    return partners_of(chains, score, turn)


BROKEN_CHAINS = """
[sequence.tpc_link_segments]
max_chi2 = 1.0
[sequence.tpc_link_free_ends]
max_chi2 = 0.0
piece_distance = 0.0
[sequence.tpc_insert_segments]
piece_distance = 0.0
"""
"""Links need a smaller chi2 than turns, so the chain of a particle breaks where a turn joins both parts."""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_chains_of_a_particle_that_turns_several_times_are_one_track(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = [
        helix(q, rng.uniform(0, 6), rng.uniform(0.01, 0.12), 5.0 + 9.0 * i, 3.0)
        for i, q in enumerate((8, -9, 10, -11, 12, 9.5))
    ]
    clusters = together(*given)
    for number, own in clusters.items():
        seen = own[rng.random(len(own)) < 0.95]
        seen["y"] += np.rint(rng.normal(0, 0.08 / 0.0015, len(seen))).astype(np.int16).view(np.uint16)
        seen["z"] += np.rint(rng.normal(0, 0.08 / 0.004, len(seen))).astype(np.int16).view(np.uint16)
        clusters[number] = seen
    mep = mep_of([event_of(clusters)])
    found = Merged(columns_of(mep, BROKEN_CHAINS))
    limits, c = limits_of(find_clones, "max_clone_gap", "max_clone_gap")
    longer = longer_segments(
        *(limits, c["max_chi2"], found.ends[:, 0], found.bins, found.tracks["slice"]),
        *(found.tracks["n_clusters"], found.rows),
    )
    clones = clones_of(longer)
    partners = partners_in(found, clones)
    expected, _ = merged_segments(found.best, clones, found.ends, partners)
    assert (found.segments, found.run.tolist()) == ([each for each, _ in expected], [run for _, run in expected])
    alone = Merged(columns_of(mep, BROKEN_CHAINS + "[sequence.tpc_find_turns]\nmax_turn_chi2 = 0.0\n"))
    assert (alone.turn_chain == NO_END).all()
    assert max(len(each) for each in alone.segments) > 2
    n_turns = len(alone.merged) - len(found.merged)
    assert n_turns == len(partners) // 2
    assert n_turns >= len(given)


def event_has_links_out_of_time(event: Merged) -> bool:
    flat = event.ends.reshape(-1)
    mutual = [a for a, b in enumerate(event.best.tolist()) if b != NO_END and event.best[b] == a]
    return bool(is_out_of_time(flat[mutual], flat[event.best[mutual]]).any())


WITHOUT_LOSS = "[sequence.tpc_fit_merged_tracks]\nenergy_loss = 0.0\n"
"""The clusters are those of exact helices."""


def test_one_particle_gives_one_track_over_borders_electrode_and_turns() -> None:
    middle = np.radians(10.0)
    for q, phi, tan_lambda, z0, slices, run in (
        (-0.5, middle + 0.1, 0.3, 2.0, [0, 1], 2),  # a border
        (0.05, middle, 0.2, -30.0, [18, 0], 2),  # the central electrode
        (9.0, middle + 0.9, 0.2, 2.0, None, None),  # it turns back
    ):
        turns = 0.9 if slices is None else 0.4
        found = Merged(columns_of(mep_of([event_of(helix(q, phi, tan_lambda, z0, turns))]), WITHOUT_LOSS))
        assert len(found.merged) == 1
        (segments,) = found.segments
        if slices is None:
            assert len(segments) >= 2
            assert 1 <= found.run[0] < len(segments)
        else:
            assert found.tracks["slice"][segments].tolist() == slices
            assert found.run[0] == run
        (record,) = found.merged
        assert record["q_pt"] == pytest.approx(q, abs=0.02)
        assert record["tan_lambda"] == pytest.approx(tan_lambda, abs=0.01)
        assert record["slice"] == found.tracks["slice"][segments[0]]


def test_merged_tracks_depend_neither_on_the_order_of_clusters_nor_on_threads(event: Merged) -> None:
    rng = np.random.default_rng(3)
    given = together(*(helix(q, phi, 0.3, 1.0) for q, phi in ((1.0, 0.2), (-3.0, 1.1), (8.0, 2.0), (2.0, 4.0))))
    other = {number: rng.permutation(clusters) for number, clusters in given.items()}
    one = Merged(columns_of(mep_of([event_of(given, 2)])))
    for threads, clusters in ((1, other), (2, other), (2, given)):
        two = Merged(columns_of(mep_of([event_of(clusters, 3)]), threads=threads))
        assert two.merged.tobytes() == one.merged.tobytes()
        assert two.segments == one.segments
    assert any(len(each) > 1 for each in one.segments)


LIMITS = BatchLimits(events=1, input_bytes=1 << 16)


def ends_at(z: NDArray[np.float32]) -> NDArray[np.void]:
    """Ends of segments at some z, without slope."""
    ends = np.zeros(z.shape, SEGMENT_END.dtype)
    ends["z"] = z
    return ends


def turn_columns(n: int, turns: dict[int, tuple[float, int]]) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """Score and chain of the best turn of each segment."""
    score, chain = np.full(n, 1e30, np.float32), np.full(n, NO_END, np.uint32)
    for i, (of_turn, to) in turns.items():
        score[i], chain[i] = of_turn, to
    return score, chain


def joined(
    best: list[int],
    clones: dict[int, int],
    ends: NDArray[np.void],
    turns: dict[int, tuple[float, int]] | None = None,
) -> dict[str, NDArray[Any]]:
    """turns: score and chain of the best turn of some segments."""
    n = len(ends)
    score, chain = turn_columns(n, turns or {})
    longer, shorter = np.full(n, NO_END, np.uint32), np.full(n, NO_END, np.uint32)
    for of, clone in clones.items():
        longer[clone], shorter[of] = of, clone
    given = {
        "tpc_tracks.count": np.array([n], np.uint32),
        "tpc_tracks.inner": ends[:, 0],
        "tpc_tracks.outer": ends[:, 1],
        "tpc_tracks.best_end": np.array(best, np.uint32),
        "tpc_tracks.longer": longer,
        "tpc_tracks.shorter": shorter,
        "tpc_tracks.turn_score": score,
        "tpc_tracks.turn_chain": chain,
    }
    return run_algorithms([join_segments], given, 1, LIMITS, on_cpu(kernels=CHAIN.kernels))


def result_of(found: dict[str, NDArray[Any]]) -> list[tuple[list[int], int]]:
    n = int(found["tpc_merged_tracks.count"][0])
    if n == 0:
        return []
    sizes = found["tpc_merged_tracks.size"][:n].astype(int)
    segments = found["tpc_merged_segments.segment"][: sizes.sum()]
    runs = found["tpc_merged_tracks.run"][:n].tolist()
    return [(each.tolist(), run) for each, run in zip(np.split(segments, np.cumsum(sizes)[:-1]), runs, strict=True)]


def test_a_chain_that_is_too_long_stays_apart_and_is_noted() -> None:
    """Segment i leads from its outer end to the inner one of the next; also a ring, and chains with clones."""
    for n, ring, n_clones, is_long in (
        *((MAX_SEGMENTS, ring, 0, False) for ring in (False, True)),
        *((MAX_SEGMENTS + 1, ring, 0, True) for ring in (False, True)),
        (MAX_SEGMENTS - 1, False, 1, False),
        (MAX_SEGMENTS - 1, False, 2, True),
        (3 * MAX_SEGMENTS, False, 0, True),
    ):
        best = []
        for i in range(n):
            best += [2 * ((i - 1) % n) + 1 if i > 0 or ring else NO_END]
            best += [2 * ((i + 1) % n) if i < n - 1 or ring else NO_END]
        clones = {i: n + i for i in range(n_clones)}
        best += [NO_END] * (2 * n_clones)
        ends = np.zeros((n + n_clones, 2), SEGMENT_END.dtype)
        found = joined(best, clones, ends)
        assert found["events.flags"][0] == (LONG_CHAIN.mask if is_long else 0)
        expected, long_too = merged_segments(np.array(best, np.int64), clones, ends)
        assert long_too == is_long
        assert result_of(found) == expected
        assert len(expected) == (n if is_long else 1)


def chain_of_links(n: int, first: int) -> list[int]:
    """Segments first to first + n - 1, each linked from its outer end to the inner one of the next."""
    best = [
        [2 * i - 1 if i > first else NO_END, 2 * i + 2 if i < first + n - 1 else NO_END]
        for i in range(first, first + n)
    ]
    return [each for pair in best for each in pair]


def test_two_chains_are_one_track_if_each_is_the_best_turn_of_the_other() -> None:
    def tracks(sizes: list[int], turns: dict[int, tuple[float, int]], z: list[float]) -> list[tuple[list[int], int]]:
        firsts = np.cumsum([0, *sizes[:-1]])
        best = [each for n, i in zip(sizes, firsts, strict=True) for each in chain_of_links(n, int(i))]
        ends = np.zeros((sum(sizes), 2), SEGMENT_END.dtype)
        ends["z"] = np.repeat(z, sizes)[:, None]
        found = joined(best, {}, ends, turns)
        chains = chain_numbers(np.array(best, np.int64), {})
        score, turn = turn_columns(len(ends), turns)
        partners = partners_of(chains, score, turn.astype(np.int64))
        expected, _ = merged_segments(np.array(best, np.int64), {}, ends, partners)
        assert result_of(found) == expected
        return expected

    # Segments 1 and 4 name the chain of the other; the one with the smaller |z| comes first.
    pair = {1: (3.0, 2), 4: (3.0, 0)}
    assert tracks([2, 3], pair, [1.0, -2.0]) == [([0, 1, 2, 3, 4], 2)]
    assert tracks([2, 3], pair, [-2.0, 1.0]) == [([2, 3, 4, 0, 1], 3)]
    assert tracks([2, 3], pair, [1.0, -1.0]) == [([0, 1, 2, 3, 4], 2)]
    # One of them prefers a third chain, by its score or, with equal ones, by its number.
    assert len(tracks([2, 3, 1], {**pair, 0: (2.0, 5)}, [1.0, 2.0, 3.0])) == 3
    assert len(tracks([2, 3, 1], {**pair, 0: (3.0, 5)}, [1.0, 2.0, 3.0])) == 2
    assert len(tracks([1, 2, 3], {0: (3.0, 3), 1: (3.0, 3), 4: (3.0, 1), 3: (3.0, 0)}, [1.0, 2.0, 3.0])) == 2
    assert len(tracks([2, 3], {1: (3.0, 2)}, [1.0, 2.0])) == 2
    # Both together have at most MAX_SEGMENTS segments.
    for more, n in ((0, 1), (1, 2)):
        sizes = [MAX_SEGMENTS - 5 + more, 5]
        turns = {0: (3.0, sizes[0]), sizes[0]: (3.0, 0)}
        assert len(tracks(sizes, turns, [1.0, 2.0])) == n


def random_turns(rng: np.random.Generator, chains: NDArray[np.int64]) -> dict[int, tuple[float, int]]:
    """A turn of most segments, to one of few other chains, with scores that are often equal."""
    numbers = sorted(set(chains.tolist()) - {NO_END})
    turns = {}
    for i in np.flatnonzero(rng.random(len(chains)) < 0.8).tolist():
        if (own := int(chains[i])) in numbers and len(numbers) > 1:
            place = numbers.index(own) ^ 1
            to = numbers[place] if place < len(numbers) and rng.random() < 0.8 else int(rng.choice(numbers))
            if to != own:
                turns[i] = float(rng.integers(1, 4)), to
    return turns


def test_chains_of_random_links_and_turns_equal_a_walk_through_them() -> None:
    rng = np.random.default_rng(7)
    pairs = 0
    for n in (0, 1, 7, 60, 300):
        best = np.where(rng.random(2 * n) < 0.1, NO_END, rng.integers(0, max(2 * n, 1), 2 * n))
        # Most links are mutual.
        order = rng.permutation(2 * n)[: n // 2 * 2]
        for a, b in order.reshape(-1, 2).tolist():
            if a // 2 != b // 2:
                best[a], best[b] = b, a
        best[best // 2 == np.arange(2 * n) // 2] = NO_END
        ends = ends_at(rng.choice(np.array([-3.0, 1.0, 1.0, 2.0], np.float32), (n, 2)))
        chains = chain_numbers(best.astype(np.int64), {})
        for with_turns in (False, True):
            turns = random_turns(rng, chains) if with_turns else {}
            found = joined(best.tolist(), {}, ends, turns)
            score, turn = turn_columns(n, turns)
            partners = partners_of(chains, score, turn.astype(np.int64))
            expected, is_long = merged_segments(best.astype(np.int64), {}, ends, partners)
            assert result_of(found) == expected
            assert (found["events.flags"][0] == LONG_CHAIN.mask) == is_long
            pairs += len(partners)
    assert pairs > 20


def test_the_fit_of_a_track_of_another_collision_ends_at_the_central_electrode() -> None:
    links = [NO_END, 2, 1, NO_END]
    same_side = at_the_electrode()
    same_side[1, 0]["z"], same_side[1, 0]["slope"] = 30.0, -0.1
    for ends, run in ((at_the_electrode(0.0), 2), (at_the_electrode(50.0), 1), (same_side, 2)):
        found = joined(links, {}, ends)
        assert result_of(found) == [([0, 1], run)]
        expected, _ = merged_segments(np.array(links, np.int64), {}, ends)
        assert expected == [([0, 1], run)]
    # Clusters at z = 0 of a particle of another collision seem to be 30 cm away on both sides.
    given = helix(0.05, np.radians(10.0), 0.2, -30.0)
    for clusters in given.values():
        clusters["z"] += np.uint16(round(30.0 / 0.004))
    merged = Merged(columns_of(mep_of([event_of(given)])))
    assert merged.segments == [[1, 0]]
    assert merged.run.tolist() == [1]
    (record,) = merged.merged
    assert record["slice"] == 18
    assert record["n_fitted"] == merged.tracks["n_clusters"][1]
    assert record["tan_lambda"] == pytest.approx(0.2, abs=0.01)


def test_bins_are_those_of_the_axis_and_the_slope(event: Merged) -> None:
    """In double precision, of tracks from the beam and of others; a segment at the border of two bins may be in
    either."""
    others = together(*(helix(3.0, phi, 0.31, 2.0, shift=30.0) for phi in (1.0, 2.0, 4.0)))
    displaced = Merged(columns_of(mep_of([event_of(others)])))
    ends, bins = np.concatenate([event.ends, displaced.ends])[:, 0], np.concatenate([event.bins, displaced.bins])
    e = {name: ends[name].astype(np.float64) for name in SEGMENT_END.dtype.names or ()}
    r2 = e["x"] ** 2 + e["y"] ** 2
    beam = 2.0 * (e["x"] * e["along_y"] - e["y"] * e["along_x"]) / r2
    variance = (2.0 * 2.0 / r2) ** 2
    near = (e["curvature"] - beam) ** 2 <= 9.0 * (e["kk"] + variance)
    assert near.sum() > 0.5 * len(event.ends)
    assert (~near).any()
    k = np.where(near, (e["curvature"] / e["kk"] + beam / variance) / (1.0 / e["kk"] + 1.0 / variance), e["curvature"])
    # The centre of the circle as a direction from the beam, times its curvature; opposite ones are one axis.
    axis = np.mod(np.arctan2(k * e["y"] + e["along_x"], k * e["x"] - e["along_y"]), np.pi)
    x, y = np.cos(axis), np.sin(axis)
    share = np.where(x < 0, 2 - y / (y - x), y / (x + y))
    for place, found in ((share * 32.0, bins % 64), (np.abs(e["slope"]) * 40.0, bins // 64)):
        apart = np.abs(place - np.rint(place)) > 1e-3
        assert apart.sum() > 0.9 * len(bins)
        assert (found == np.minimum(place.astype(int), 63))[apart].all()
