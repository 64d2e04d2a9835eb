"""Merged tracks against a sequential oracle over all pairs, a matrix of slices, and exact helices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.geometry.slices import slice_angle
from hltnode.processing.alice.tpc.collections import TRACK
from hltnode.processing.alice.tpc.flags import LONG_CHAIN
from hltnode.processing.alice.tpc.merging.collections import (
    MAX_SEGMENTS,
    NO_END,
    SEGMENT_BINS,
    SEGMENT_END,
)
from hltnode.processing.alice.tpc.merging.links.find_clones import find_clones
from hltnode.processing.alice.tpc.merging.links.find_turns import find_turns
from hltnode.processing.alice.tpc.merging.links.join_segments import join_segments
from hltnode.processing.alice.tpc.merging.links.link_segments import link_segments
from hltnode.processing.alice.tpc.merging.segments.sort_segments import sort_segments
from hltnode.processing.framework.limits import BatchLimits
from hltnode.protocol.alice.tpc_banks import N_SLICES
from tests.processing.alice.merged_events import Merged, event_of_all_kinds, helix, slice_oracle, together
from tests.processing.alice.merging_oracle import (
    Limits,
    best_ends,
    best_turns,
    chain_numbers,
    clones_of,
    continuation,
    f,
    is_out_of_time,
    longer_segments,
    merged_segments,
    partners_of,
)
from tests.processing.alice.toy_events import columns_of, event_of, mep_of
from tests.processing.alice.track_oracle import Slice, State
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms

Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def event() -> Merged:
    """Curling particles, tracks over borders and the central electrode, and a track twice."""
    return event_of_all_kinds()


def limits_of(algorithm: Any, gap: str, overlap: str) -> tuple[Limits, dict[str, Any]]:
    c = {each.name: each.value for each in algorithm.constants}
    names = ("distance", "angle", "bend", "z", "slope", gap, overlap)
    return Limits(*(f(c[name]) for name in names)), c


def test_links_and_merged_tracks_equal_a_search_over_all_pairs(event: Merged) -> None:
    limits, c = limits_of(find_clones, "max_clone_gap", "max_clone_gap")
    t = event.tracks
    longer = longer_segments(
        limits, c["max_chi2"], event.ends[:, 0], event.bins, t["slice"], t["n_clusters"], event.rows
    )
    assert event.longer.tolist() == longer.tolist()
    clones = clones_of(longer)
    left_out = np.isin(np.arange(len(t)), list(clones.values()))
    limits, c = limits_of(link_segments, "max_gap", "max_overlap")
    assert event.best.tolist() == best_ends(limits, event.ends, event.bins, left_out, c).tolist()
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


def partners_in(found: Merged, clones: dict[int, int]) -> dict[int, int]:
    """The pairs of chains of an event, whose turns are those of a search over all pairs."""
    limits, c = limits_of(find_turns, "max_gap", "max_overlap")
    chains = chain_numbers(found.best, clones)
    score, turn = best_turns(limits, found.ends, found.bins, chains, c)
    assert found.turn_score.tolist() == score.tolist()
    assert found.turn_chain.tolist() == turn.tolist()
    return partners_of(chains, score, turn)


def test_chains_of_a_particle_that_turns_several_times_are_one_track() -> None:
    rng = np.random.default_rng(19)
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
    found = Merged(columns_of(mep))
    limits, c = limits_of(find_clones, "max_clone_gap", "max_clone_gap")
    longer = longer_segments(
        *(limits, c["max_chi2"], found.ends[:, 0], found.bins, found.tracks["slice"]),
        *(found.tracks["n_clusters"], found.rows),
    )
    clones = clones_of(longer)
    partners = partners_in(found, clones)
    assert partners
    expected, _ = merged_segments(found.best, clones, found.ends, partners)
    assert (found.segments, found.run.tolist()) == ([each for each, _ in expected], [run for _, run in expected])
    alone = Merged(columns_of(mep, "[sequence.tpc_find_turns]\nmax_turn_chi2 = 0.0\n"))
    assert (alone.turn_chain == NO_END).all()
    assert len(found.merged) < len(alone.merged)


def event_has_links_out_of_time(event: Merged) -> bool:
    flat = event.ends.reshape(-1)
    mutual = [a for a, b in enumerate(event.best.tolist()) if b != NO_END and event.best[b] == a]
    return bool(is_out_of_time(flat[mutual], flat[event.best[mutual]]).any())


def outwards(oracle: Slice, found: Merged, clusters: NDArray[np.uint32]) -> State | None:
    """The sequential fit of a segment from its first to its last cluster."""
    rows = found.cluster_rows[clusters].astype(int)
    index = [(row, k) for k, row in enumerate(rows)]
    step = min((len(index) - 1) // 2, 8)
    t = oracle.start([index[0], index[step], index[2 * step]], True)
    fitted = 1
    for row, k in index[1:]:
        if t is None or not oracle.propagate(t, oracle.row_x[row]):
            return None
        if fitted >= 10 and oracle.chi2(t, row, k) > f(25):
            continue
        oracle.update(t, row, k)
        if not oracle.is_within(t.s):
            return None
        fitted += 1
    return t


def end_of(t: State, number: int, unit: Any, outer: bool) -> list[float]:
    """The end in the global frame, in double precision."""
    angle = slice_angle(np.array([number]))[0]
    sign, side = (1.0 if outer else -1.0), (1.0 if number < 18 else -1.0)
    x, y, s, c = float(t.x), float(t.y), float(t.s), float(np.sqrt(1 - float(t.s) ** 2))
    cosine, sine = np.cos(angle), np.sin(angle)
    return [
        *(x * cosine - y * sine, x * sine + y * cosine, side * float(t.z)),
        *(sign * (c * cosine - s * sine), sign * (c * sine + s * cosine), sign * unit * t.q, sign * side * t.l),
        *(t.yy * c * c, sign * t.sy, t.ss / c**2, unit * t.qy * c, sign * unit * t.qs / c, unit**2 * t.qq),
        *(t.zz, sign * t.lz, t.ll),
    ]


def test_ends_are_those_of_the_track_and_of_a_fit_outwards(event: Merged) -> None:
    n_outer = 0
    for i, record in enumerate(event.tracks):
        clusters = event.clusters(i)
        oracle = slice_oracle(event.places[clusters])
        side = 1.0 if record["slice"] < 18 else -1.0
        inner = State(*(record[name] for name in ("x", "y", "z", "sin_phi", "tan_lambda", "q_pt", "c_yy", "c_zz")))
        inner.z, inner.l = side * inner.z, side * inner.l
        inner.sy, inner.ss, inner.lz, inner.ll, inner.qy, inner.qs, inner.qq = (
            record[f"c_{name}"] for name in ("sy", "ss", "lz", "ll", "qy", "qs", "qq")
        )
        for k, t in enumerate((inner, outwards(oracle, event, clusters))):
            if t is None:
                assert event.ends[i, k]["along_x"] == event.ends[i, k]["along_y"] == 0
                continue
            n_outer += k
            unit = float(oracle.unit(t.x, t.y, t.z))
            expected = end_of(t, int(record["slice"]), unit, k == 1)
            np.testing.assert_allclose(event.ends[i, k].tolist(), expected, rtol=2e-5, atol=2e-5)
        rows = event.cluster_rows[clusters]
        assert event.rows[i].tolist() == [rows[0], rows[-1]]
    assert n_outer > 0.9 * len(event.tracks)


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


def at_the_electrode(shift: float = 50.0, gap: float = 5.0, first: int = 1, second: int = 0) -> NDArray[np.void]:
    """Two segments whose ends lead over the central electrode, out of time by `shift` cm; the way between them is
    `gap` cm long, and the electrode is in its middle."""
    ends = two_ends(gap, 1000.0, first, second)
    ends[0, first]["slope"], ends[1, second]["slope"] = -0.1, 0.1
    ends[0, first]["z"], ends[1, second]["z"] = shift + 0.05 * gap, -shift - 0.05 * gap
    return ends


def test_tracks_of_other_collisions_are_linked_over_the_central_electrode() -> None:
    c = {each.name: each.value for each in link_segments.constants}
    for shift in (0.0, 2.0, 50.0, -1.0):
        assert linked(at_the_electrode(shift)) == (shift != -1.0)
    # Not where the particle turns: from an outer end to an outer one, or between two inner ones.
    for first, second, expected in ((1, 0, True), (0, 1, True), (1, 1, False), (0, 0, False)):
        for shift, in_time in ((50.0, expected), (0.0, True)):
            ends = at_the_electrode(shift, 5.0, first, second)
            ends["curvature"] *= 10.0  # it may turn back inwards
            ends[1, second] = two_ends(5.0, 100.0, first, second)[1, second]
            ends[1, second]["slope"], ends[1, second]["z"] = 0.1, -shift - 0.25
            assert linked(ends) == in_time, (first, second, shift)
    # Both ends lead to the electrode.
    for turned in (None, 0, 1):
        ends = at_the_electrode()
        ends["slope"] *= 0.2
        if turned is not None:
            ends[turned]["slope"] *= -1.0
        assert linked(ends) == (turned is None)
    # One of the ends is farther from the electrode than the errors and the way in z allow.
    variance = 0.02 + c["z"] ** 2 + 0.01 * c["distance"] ** 2 + 25 * 0.5e-4 + 0.5**2
    for share, expected in ((0.98, True), (1.02, False)):
        ends = at_the_electrode()
        ends[1, 0]["z"] -= share * np.sqrt(c["max_chi2"] * variance)
        assert linked(ends) == expected


def test_a_difference_in_z_that_a_helix_can_have_is_in_time() -> None:
    """The least shift, 1 cm beyond the way in z. The sum of z would do, the difference on the helix does not."""
    for apart, expected in ((0.98, False), (1.02, True)):
        ends = at_the_electrode(0.0, 20.0)
        for name in ("dd", "zz"):
            ends[name] = 1e-6
        ends["ll"] = 1e-9
        # 1.58 chords in z, and the least shift.
        dz = 0.5 * (0.1 * 1.58 * 20.0 + apart)
        ends[0, 1]["z"], ends[1, 0]["z"] = dz, -dz
        assert linked(ends) == expected


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


def best_of(ends: NDArray[np.void], bins: list[int] | None = None) -> list[int]:
    """The best end of each end of some segments, all in slice 0 and in one bin or in `bins`."""
    n = len(ends)
    counts = np.zeros(N_SLICES, np.uint32)
    counts[0] = n
    of_bins = np.zeros(n, np.uint16) if bins is None else np.array(bins, np.uint16)
    given = {
        "tpc_slices.tracks": counts,
        "tpc_tracks.count": np.array([n], np.uint32),
        "tpc_tracks.inner": ends[:, 0],
        "tpc_tracks.outer": ends[:, 1],
        "tpc_tracks.bin": of_bins,
        "tpc_tracks.longer": np.full(n, NO_END, np.uint32),
        "tpc_tracks.shorter": np.full(n, NO_END, np.uint32),
    }
    found = run_algorithms([sort_segments, link_segments], given, 1, LIMITS, on_cpu(kernels=CHAIN.kernels))
    best: list[int] = found["tpc_tracks.best_end"][: 2 * n].tolist()
    return best


def linked(ends: NDArray[np.void]) -> bool:
    """Whether an end of one of the segments has a best end."""
    return any(best != NO_END for best in best_of(ends))


def two_ends(gap: float, radius: float, first: int, second: int, **moved: float) -> NDArray[np.void]:
    """Two segments; the way out of end `first` of one leads on an exact circle to end `second` of the other one."""
    ends = np.zeros((2, 2), SEGMENT_END.dtype)
    ends["x"], ends["along_x"] = [[100, 100], [100, 100]], 0.0
    a, b, k = ends[0, first], ends[1, second], 1.0 / radius
    for end in (a, b):
        for name in ("dd", "zz"):
            end[name] = 0.01
        end["ff"], end["kk"], end["ll"] = 1e-4, 1e-8, 1e-4
    a["along_x"], a["along_y"], a["curvature"], a["slope"] = 1.0, 0.0, k, 0.1
    turn = gap * k
    b["x"] = a["x"] + np.sin(turn) / k
    b["y"] = a["y"] + (1 - np.cos(turn)) / k
    b["z"] = 0.1 * gap
    b["along_x"], b["along_y"], b["curvature"], b["slope"] = -np.cos(turn), -np.sin(turn), -k, -0.1
    for name, value in moved.items():
        b[name] += value
    return ends


def test_every_limit_of_a_link_decides_alone() -> None:
    c = {each.name: each.value for each in link_segments.constants}
    assert linked(two_ends(20.0, 60.0, 1, 0))
    for gap, expected in ((c["max_gap"] - 1, True), (c["max_gap"] + 1, False)):
        assert linked(two_ends(gap, 75.0, 1, 0)) == expected
    for gap, expected in ((-c["max_overlap"] + 0.1, True), (-c["max_overlap"] - 0.1, False)):
        assert linked(two_ends(gap, 1000.0, 1, 0)) == expected
    for radius, expected in ((c["max_turning_radius"] - 1, True), (c["max_turning_radius"] + 1, False)):
        assert linked(two_ends(150.0, radius, 0, 0)) == expected
        assert linked(two_ends(20.0, radius, 1, 0))
    # Each of the five differences with the variance of both ends at gap 0.
    limit = np.sqrt(c["max_chi2"])
    common = {"y": 0.02 + c["distance"] ** 2, "z": 0.02 + c["z"] ** 2 + 0.01 * c["distance"] ** 2}
    common |= {"slope": 2e-4 + c["slope"] ** 2, "curvature": 2e-8 + (c["bend"] / 60.0) ** 2}
    for name, variance in common.items():
        sigma = np.sqrt(variance)
        assert linked(two_ends(0.0, 60.0, 1, 0, **{name: 0.98 * limit * sigma}))
        assert not linked(two_ends(0.0, 60.0, 1, 0, **{name: 1.02 * limit * sigma}))
    sigma = np.sqrt(2e-4 + c["angle"] ** 2)
    for turns, expected in ((0.98 * limit, True), (1.02 * limit, False)):
        ends = two_ends(0.0, 1000.0, 1, 0)
        ends[1, 0]["along_x"], ends[1, 0]["along_y"] = -np.sqrt(1 - (turns * sigma) ** 2), turns * sigma
        assert linked(ends) == expected
    # A segment without outer end.
    ends = two_ends(20.0, 60.0, 1, 0)
    ends[1, 0]["along_x"] = ends[1, 0]["along_y"] = 0.0
    assert not linked(ends)


def test_errors_behind_a_gap_are_those_of_small_changes_of_the_end() -> None:
    """The covariance of distance, angle and curvature, moved along the circle, against differences of two ways."""
    one, off = f(1), f(1e9)  # tolerances; with `off` a difference does not count
    limits = {
        "distance": Limits(one, off, off, off, off, f(400), f(5)),
        "angle": Limits(off, one, off, off, off, f(400), f(5)),
    }
    change = np.array([0.05, 1e-3, 2e-5])  # of distance, angle, curvature
    for gap, radius in ((5.0, 60.0), (40.0, -60.0), (150.0, 75.0), (30.0, 1000.0)):
        ends = two_ends(gap, radius, 1, 0, x=0.2, y=0.3)
        a, b = ends[0, 1:].copy(), ends[1, :1].copy()
        for end in (a, b):
            for name in ("dd", "df", "ff", "dk", "fk", "kk", "zz", "lz", "ll"):
                end[name] = 0
        # The way into b meets it at an angle that is not 0.
        ax, ay = float(b["along_x"][0]), float(b["along_y"][0])
        b["along_x"], b["along_y"] = ax - 0.02 * ay, ay + 0.02 * ax
        for name, of in limits.items():

            def difference(step: float, of: Limits = of, a: NDArray[np.void] = a, b: NDArray[np.void] = b) -> float:
                moved = a.copy()
                d, turned, k = step * change
                moved["y"] += d
                moved["along_x"], moved["along_y"] = np.cos(turned), np.sin(turned)
                moved["curvature"] += k
                return float(np.sqrt(continuation(of, moved, b)[0][0]))

            expected = (difference(0.5) - difference(-0.5)) ** 2
            (dd, df, dk), (_, ff, fk), (_, _, kk) = np.outer(change, change)
            wide = a.copy()
            for term, value in (("dd", dd), ("df", df), ("ff", ff), ("dk", dk), ("fk", fk), ("kk", kk)):
                wide[term] = 1e4 * value
            variance = difference(0.0) ** 2 / float(continuation(of, wide, b)[0][0]) - 1.0
            assert variance == pytest.approx(1e4 * expected, rel=0.03), (name, gap, radius)


def longer_of(
    inner: NDArray[np.void], rows: list[tuple[int, int]], n_clusters: list[int], slices: tuple[int, ...] = (0, 0)
) -> list[int]:
    """The longer segment of each of some segments in the same bin; their slices must rise."""
    n = len(inner)
    begins = np.zeros(SEGMENT_BINS + 1, np.uint32)
    begins[1:] = n
    tracks = np.zeros(n, TRACK.dtype)
    tracks["n_clusters"], tracks["slice"] = n_clusters, slices
    given = {
        "tpc_slices.tracks": np.bincount(slices, minlength=N_SLICES).astype(np.uint32),
        "tpc_tracks.track": tracks,
        "tpc_tracks.inner": inner,
        "tpc_tracks.rows": np.array(rows, np.uint8).ravel(),
        "tpc_tracks.bin": np.zeros(n, np.uint16),
        "tpc_tracks.bin_begins": begins,
        "tpc_tracks.sorted": np.arange(n, dtype=np.uint32),
    }
    found = run_algorithms([find_clones], given, 1, LIMITS, on_cpu(kernels=CHAIN.kernels))
    longer: list[int] = found["tpc_tracks.longer"][:n].tolist()
    for i in range(n):
        assert found["tpc_tracks.shorter"][i] == (longer.index(i) if i in longer else NO_END)
    return longer


def two_inner_ends(gap: float, radius: float, **moved: float) -> NDArray[np.void]:
    """Inner ends of two segments on one circle; the second one lies `gap` cm farther along it."""
    a, b = two_ends(gap, radius, 1, 0, **moved)[[0, 1], [1, 0]].copy()
    for name in ("along_x", "along_y", "curvature", "slope"):
        a[name] = -a[name]
    return np.array([a, b])


def test_every_limit_of_a_clone_decides_alone() -> None:
    c = {each.name: each.value for each in find_clones.constants}
    rows, sizes = [(0, 99), (10, 59)], [100, 50]

    def is_clone(ends: NDArray[np.void]) -> bool:
        longer = longer_of(ends, rows, sizes)
        assert longer in ([NO_END, 0], [NO_END, NO_END])
        return longer[1] == 0

    for sign in (-1, 1):
        for way, expected in ((c["max_clone_gap"] - 1, True), (c["max_clone_gap"] + 1, False)):
            assert is_clone(two_inner_ends(sign * way, 1000.0)) == expected
    limit = np.sqrt(c["max_chi2"])
    common = {"y": 0.02 + c["distance"] ** 2, "z": 0.02 + c["z"] ** 2 + 0.01 * c["distance"] ** 2}
    common |= {"slope": 2e-4 + c["slope"] ** 2, "curvature": 2e-8 + (c["bend"] / 60.0) ** 2}
    for name, variance in common.items():
        for share, expected in ((0.98, True), (1.02, False)):
            assert is_clone(two_inner_ends(0.0, 60.0, **{name: share * limit * np.sqrt(variance)})) == expected
    for share, expected in ((0.98, True), (1.02, False)):
        turned = share * limit * np.sqrt(2e-4 + c["angle"] ** 2)
        ends = two_inner_ends(0.0, 1000.0)
        ends[1]["along_x"], ends[1]["along_y"] = -np.sqrt(1 - turned**2), turned
        assert is_clone(ends) == expected


def test_a_clone_has_half_of_its_rows_in_those_of_a_longer_segment_of_its_slice() -> None:
    ends = two_inner_ends(0.0, 60.0)
    for rows, expected in (
        *(([(50, 99), (25, 74)], 0), ([(50, 99), (24, 74)], NO_END)),  # 25 of 50, and of 51
        *(([(0, 49), (25, 74)], 0), ([(0, 49), (25, 75)], NO_END)),
        ([(0, 9), (20, 29)], NO_END),
    ):
        assert longer_of(ends, rows, [100, 50]) == [NO_END, expected]
    rows = [(0, 99), (0, 99)]
    assert longer_of(ends, rows, [50, 50]) == [NO_END, 0]
    assert longer_of(ends, rows, [50, 51]) == [1, NO_END]
    assert longer_of(ends, rows, [100, 50], (0, 1)) == [NO_END, NO_END]
    # The better one of two longer ones, of equal ones the first.
    for z, best in ((0.0, 0), (0.1, 1)):
        three = np.concatenate([ends[:1], ends[:1], ends[1:]])
        three[0]["z"] += z
        assert longer_of(three, [(0, 99)] * 3, [90, 90, 50], (0, 0, 0))[2] == best


def test_segments_are_searched_in_the_bins_around_their_own() -> None:
    ends = two_ends(20.0, 60.0, 1, 0)
    middle = 30 * 64 + 20
    for first, second, expected in (
        *((middle, middle + lines * 64, abs(lines) <= 2) for lines in (-3, -2, 2, 3)),
        *((middle, middle + columns, abs(columns) <= 5) for columns in (-6, -5, 5, 6)),
        # The axis is periodic; |pz / pT| is not.
        *((30 * 64 + 1, 30 * 64 + column, expected) for column, expected in ((60, True), (59, False))),
        *((30 * 64 + 62, 30 * 64 + column, expected) for column, expected in ((3, True), (4, False))),
        *((line * 64 + 20, (63 - line) * 64 + 20, False) for line in (0, 63)),
        *((line * 64 + 20, other * 64 + 20, True) for line, other in ((0, 2), (63, 61))),
    ):
        # Each of the two searches: from the outer end of the first, and from the inner one of the second.
        best = [NO_END, 2, 1, NO_END] if expected else [NO_END] * 4
        assert best_of(ends, [first, second]) == best, (first, second)


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


def test_the_next_segment_wins_over_a_better_one_farther_away() -> None:
    c = {each.name: each.value for each in link_segments.constants}
    for extra, nearer in ((-0.5, True), (0.5, False)):
        ends = np.concatenate([two_ends(10.0, 60.0, 1, 0, z=0.0), two_ends(30.0, 60.0, 1, 0)[1:]])
        sigma2 = 0.02 + c["z"] ** 2 + 0.01 * (1 + 1 / 36) * c["distance"] ** 2 + 100 * 0.5e-4
        ends[1, 0]["z"] += np.sqrt((c["chi2_of_gap"] * 20.0 + extra) * sigma2)
        counts = np.zeros(N_SLICES, np.uint32)
        counts[0] = 3
        limits, constants = limits_of(link_segments, "max_gap", "max_overlap")
        best = best_ends(limits, ends, np.zeros(3, np.int64), np.zeros(3, bool), constants)
        assert (best[1] == 2) == nearer
        assert linked(ends)
