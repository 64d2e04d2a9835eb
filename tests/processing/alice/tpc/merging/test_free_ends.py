"""Links of free ends, and cuts of chains that are too long, against a search over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.tpc.flags import CROWDED_ENDS
from hltnode.processing.alice.tpc.merging.collections import MAX_FREE_ENDS, MAX_SEGMENTS, NO_END, SEGMENT_END
from hltnode.processing.alice.tpc.merging.links.cut_chains import cut_chains as cut_kernel
from hltnode.processing.alice.tpc.merging.links.link_free_ends import link_free_ends
from hltnode.processing.alice.tpc.merging.links.sort_free_ends import sort_free_ends
from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.limits import BatchLimits
from tests.processing.alice.merged_events import at_the_electrode, two_ends
from tests.processing.alice.merging_oracle import chain_numbers, cut_chains, limits_of, with_free_links
from tests.processing.framework.kernel_runner import (
    Allocate,
    Launch,
    host_memory,
    on_cpu,
    run_algorithms,
    with_block_size,
)
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

LIMITS = BatchLimits(events=1, input_bytes=1 << 20)
Links = NDArray[np.int64]
FREE_LINKS = (sort_free_ends, link_free_ends)


def run(
    kernel: Algorithm | tuple[Algorithm, ...],
    ends: NDArray[np.void],
    best: Links,
    clones: dict[int, int] | None = None,
    launch: Launch | None = None,
    allocate: Allocate = host_memory,
) -> tuple[Links, int]:
    """The links after a kernel, or several, and the flags of the event. clones: by the segment that they belong to."""
    n = len(ends)
    longer, shorter = np.full(n, NO_END, np.uint32), np.full(n, NO_END, np.uint32)
    for of, clone in (clones or {}).items():
        longer[clone], shorter[of] = of, clone
    given = {
        "tpc_tracks.count": np.array([n], np.uint32),
        "tpc_tracks.inner": ends[:, 0],
        "tpc_tracks.outer": ends[:, 1],
        "tpc_tracks.best_end": best.astype(np.uint32),
        "tpc_tracks.longer": longer,
        "tpc_tracks.shorter": shorter,
    }
    launch = launch or on_cpu(kernels=CHAIN.kernels)
    found = run_algorithms(
        kernel if isinstance(kernel, tuple) else (kernel,), given, 1, LIMITS, launch, allocate=allocate
    )
    flags = found.get("events.flags", np.zeros(1))
    return found["tpc_tracks.best_end"][: 2 * n].astype(np.int64), int(flags[0])


def free(n: int) -> Links:
    return np.full(2 * n, NO_END, np.int64)


def freely_linked(ends: NDArray[np.void]) -> bool:
    """Whether two segments without links get one; the same as in a search over all pairs."""
    best, flags = run(FREE_LINKS, ends, free(len(ends)))
    limits, c = limits_of(link_free_ends)
    assert best.tolist() == with_free_links(limits, ends, np.zeros(len(ends), bool), free(len(ends)), c).tolist()
    assert flags == 0
    linked = best != NO_END
    assert linked.sum() in (0, 2)
    return bool(linked.any())


def test_every_limit_of_a_free_link_decides_alone() -> None:
    c = {each.name: each.value for each in link_free_ends.constants}
    # 19.5 cm between both ends, along each axis, over borders of cells, and beyond the fold at 320 cm.
    for gap, expected in ((19.4, True), (19.6, False), (319.9, False)):
        assert freely_linked(two_ends(gap / np.hypot(1.0, 0.1), 5000.0, 1, 0)) == expected
    for begin in (-639.0, -20.1, -19.9, -0.1, 7.0, 300.1, 619.0):
        for axis in "xyz":
            ends = two_ends(19.0, 5000.0, 1, 0)
            ends[axis][[0, 1], [1, 0]] += begin - ends[axis][0, 1]
            ends[0, 1]["slope"], ends[1, 0]["slope"] = 0.1, -0.1
            assert freely_linked(ends), (begin, axis)
    for beyond, expected in ((639.0, True), (641.0, False)):
        for axis in "xyz":
            ends = two_ends(0.0, 5000.0, 1, 0)
            ends[axis][[0, 1], [1, 0]] = -beyond
            assert freely_linked(ends) == expected, (beyond, axis)
    # Back along the way by up to max_overlap.
    for gap, expected in ((-c["max_overlap"] + 0.1, True), (-c["max_overlap"] - 0.1, False)):
        assert freely_linked(two_ends(gap, 1000.0, 1, 0)) == expected
    # Two inner ends on circles that come back.
    for radius, expected in ((c["max_turning_radius"] - 1, True), (c["max_turning_radius"] + 1, False)):
        assert freely_linked(two_ends(10.0, radius, 0, 0)) == expected
        assert freely_linked(two_ends(10.0, radius, 1, 0))
        assert freely_linked(two_ends(10.0, radius, 1, 1))
    for of in (0, 1):
        ends = two_ends(0.0, 129.9, 0, 0)
        ends[of, 0]["curvature"] *= 129.9 / 130.1
        assert not freely_linked(ends)
    limit = np.sqrt(c["max_chi2"])
    variances = {"z": 0.02 + c["z"] ** 2 + 0.01 * c["distance"] ** 2, "slope": 2e-4 + c["slope"] ** 2}
    for name, variance in variances.items():
        for share, expected in ((0.98, True), (1.02, False)):
            assert freely_linked(two_ends(0.0, 60.0, 1, 0, **{name: share * limit * np.sqrt(variance)})) == expected
    # z of another collision over the central electrode is no reason for a link here.
    assert not freely_linked(at_the_electrode(8.0))


def test_a_free_link_needs_both_directions_of_the_way() -> None:
    """One end lies 3 cm beside the way; the error of the angle of one end covers that in its own direction alone."""
    for wide, expected in (([0], False), ([1], False), ([0, 1], True)):
        ends = two_ends(15.0, 1000.0, 1, 0, y=3.0)
        for of in wide:
            ends[of, 1 - of]["ff"] = 0.1
        assert freely_linked(ends) == expected


def piece_behind(gap: float = 10.0, length: float = 15.0, **moved: float) -> NDArray[np.void]:
    """A segment, and a piece on its helix whose angle, and so its chi2, is far off. moved: both ends of the piece."""
    ends = two_ends(gap, 100.0, 1, 0)
    ends[1, 1] = two_ends(gap + length, 100.0, 1, 0)[1, 0]
    for name in ("along_x", "along_y", "curvature", "slope"):
        ends[1, 1][name] *= -1.0
    for side in (0, 1):
        x, y = float(ends[1, side]["along_x"]), float(ends[1, side]["along_y"])
        ends[1, side]["along_x"], ends[1, side]["along_y"] = (
            (np.cos(0.3) * x - np.sin(0.3) * y),
            np.sin(0.3) * x + (np.cos(0.3) * y),
        )
        ends[1, side]["kk"] = 4e-8
    for name, value in moved.items():
        ends[1][name] += value
    return ends


def test_every_limit_of_a_link_by_place_decides_alone() -> None:
    c = {each.name: each.value for each in link_free_ends.constants}
    assert freely_linked(piece_behind())
    # Both ends of the piece must be near, on the way out, in its direction.
    for side in (0, 1):
        for name, limit in (("z", c["piece_z"]), ("slope", c["piece_slope"])):
            for share, expected in ((0.98, True), (1.02, False), (-0.98, True), (-1.02, False)):
                ends = piece_behind()
                ends[1, side][name] += share * limit
                assert freely_linked(ends) == expected, (side, name, share)
        for share, expected in ((0.98, True), (1.02, False)):
            ends = piece_behind()
            across = 0.1 if side == 0 else 0.25
            ends[1, side]["x"] += share * c["piece_distance"] * np.sin(across)
            ends[1, side]["y"] -= share * c["piece_distance"] * np.cos(across)
            assert freely_linked(ends) == expected, (side, share)
        for turned, expected in ((0.7, True), (0.8, False)):
            ends = piece_behind()
            x, y = float(ends[1, side]["along_x"]), float(ends[1, side]["along_y"])
            ends[1, side]["along_x"] = np.cos(turned) * x - np.sin(turned) * y
            ends[1, side]["along_y"] = np.sin(turned) * x + np.cos(turned) * y
            assert freely_linked(ends) == expected, (side, turned)
    for length, expected in ((49.5, True), (50.5, False)):
        assert freely_linked(piece_behind(length=length)) == expected
    for gap, expected in ((-c["max_overlap"] + 0.1, True), (-c["max_overlap"] - 0.1, False)):
        assert freely_linked(piece_behind(gap)) == expected
    # The curvature of the segment is known better.
    for ratio, expected in ((2.1, True), (1.9, False)):
        ends = piece_behind()
        ends[1]["kk"] = ratio * ends[0, 1]["kk"]
        assert freely_linked(ends) == expected
        assert freely_linked(ends[::-1]) == expected
    no_end = piece_behind()
    no_end[1, 1]["along_x"] = no_end[1, 1]["along_y"] = 0.0
    assert not freely_linked(no_end)


def test_a_link_by_chi2_comes_before_one_by_place() -> None:
    """The piece is nearer, and on the helix; the other segment has a chi2 of 30."""
    c = {each.name: each.value for each in link_free_ends.constants}
    by_chi2 = two_ends(15.0, 100.0, 1, 0, slope=np.sqrt(30.0 * (2e-4 + c["slope"] ** 2)))
    ends = np.concatenate([piece_behind(5.0), by_chi2[1:]])
    assert run(FREE_LINKS, ends, free(3))[0][1] == 4


def test_ends_with_a_link_clones_and_ends_without_direction_take_no_part() -> None:
    pair = two_ends(10.0, 60.0, 1, 0)
    far = two_ends(10.0, 60.0, 1, 0)
    far["x"] += 100.0
    ends = np.concatenate([pair, far])
    best = free(4)
    assert run(FREE_LINKS, ends, best)[0].tolist()[:4] == [NO_END, 2, 1, NO_END]
    # A mutual link stays; one that is not mutual is forgotten.
    linked = best.copy()
    linked[[1, 4]] = 4, 1
    found = run(FREE_LINKS, ends, linked)[0].tolist()
    assert (found[1], found[4], found[2]) == (4, 1, NO_END)
    one_sided = best.copy()
    one_sided[[1, 6]] = 4, 1
    found = run(FREE_LINKS, ends, one_sided)[0].tolist()
    assert (found[1], found[2], found[6]) == (2, 1, 5)
    assert run(FREE_LINKS, ends, best, {2: 1})[0][1] == NO_END
    no_way = ends.copy()
    no_way[1, 0]["along_x"] = no_way[1, 0]["along_y"] = 0.0
    assert run(FREE_LINKS, no_way, best)[0][1] == NO_END
    for value in (np.nan, np.inf, -np.inf, 1e30):
        strange = ends.copy()
        strange[1, 0]["z"] = value
        assert run(FREE_LINKS, strange, best)[0][1] == NO_END
    assert run(FREE_LINKS, ends[:0], free(0))[0].tolist() == []


def test_the_smallest_sum_wins_and_of_equal_ones_the_first_end() -> None:
    ends = np.concatenate([two_ends(5.0, 60.0, 1, 0), two_ends(12.0, 60.0, 1, 0)[1:]])
    for order, expected in (([0, 1, 2], 2), ([0, 2, 1], 4)):
        assert run(FREE_LINKS, ends[order], free(3))[0][1] == expected
    same = np.concatenate([ends[:2], ends[1:2]])
    assert run(FREE_LINKS, same, free(3))[0][1] == 2


def test_more_ends_around_one_than_a_search_takes_leave_it_free_and_are_noted() -> None:
    n = MAX_FREE_ENDS // 2 + 2
    for others, crowded in ((MAX_FREE_ENDS, False), (MAX_FREE_ENDS + 1, True)):
        ends = np.zeros((n, 2), SEGMENT_END.dtype)
        ends["x"], ends["along_x"] = 100.0, 1.0
        ends["slope"] = np.arange(2 * n).reshape(-1, 2) * 10.0
        # An end of each of these two has no direction.
        ends[:2] = two_ends(5.0, 60.0, 1, 0)
        ends["along_x"][-1, 1] = float(crowded)
        assert (ends["along_x"] != 0).sum() == others + 1
        best, flags = run(FREE_LINKS, ends, free(n))
        assert (flags, best[1]) == ((CROWDED_ENDS.mask, NO_END) if crowded else (0, 2))


def spread_ends(rng: np.random.Generator, n: int) -> NDArray[np.void]:
    """Pieces of circles that follow each other, with differences of the size of the errors."""
    ends = np.zeros((n, 2), SEGMENT_END.dtype)
    of = np.arange(n) // 3
    radius = rng.uniform(50, 200, n)[of]
    turn, slope, z0 = (rng.uniform(low, high, n)[of] for low, high in ((0, 6.28), (-0.4, 0.4), (-60, 60)))
    begin = (np.arange(n) % 3) * 0.3 + rng.uniform(0, 0.05, n)
    for side, angle in ((0, begin), (1, begin + 0.22)):
        end, sign = ends[:, side], 1.0 if side else -1.0
        for name, variance in (("dd", 0.01), ("zz", 0.01), ("ff", 1e-4), ("kk", 1e-7), ("ll", 1e-5)):
            end[name] = variance * rng.uniform(0.3, 3.0, n)
        end["x"] = radius * np.sin(turn + angle) + rng.normal(0, 0.1, n)
        end["y"] = -radius * np.cos(turn + angle) + rng.normal(0, 0.1, n)
        end["z"] = z0 + slope * radius * angle + rng.normal(0, 0.1, n)
        end["along_x"], end["along_y"] = sign * np.cos(turn + angle), sign * np.sin(turn + angle)
        end["curvature"], end["slope"] = sign * (1 / radius + rng.normal(0, 3e-4, n)), sign * slope
    return ends


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_free_links_are_those_of_a_search_over_all_pairs_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends, best = spread_ends(rng, 240), free(240)
    for a in rng.choice(240, 20, replace=False).tolist():
        best[2 * a + 1] = 2 * int(rng.integers(240))
    clones = {int(a): int(a) + 1 for a in range(0, 240, 24)}
    left_out = np.isin(np.arange(240), list(clones.values()))
    limits, c = limits_of(link_free_ends)
    found, flags = run(FREE_LINKS, ends, best, clones)
    assert found.tolist() == with_free_links(limits, ends, left_out, best, c).tolist()
    assert flags == 0
    assert 40 < (found[np.where(found == NO_END, 0, found)] == np.arange(480)).sum() < 400
    # Segments in another order.
    order = rng.permutation(240)
    place = np.argsort(order)
    moved = free(240)
    for end, to in enumerate(best.tolist()):
        if to != NO_END:
            moved[2 * place[end // 2] + end % 2] = 2 * place[to // 2] + to % 2
    other, _ = run(FREE_LINKS, ends[order], moved, {int(place[a]): int(place[b]) for a, b in clones.items()})
    for end, to in enumerate(found.tolist()):
        at = int(other[2 * place[end // 2] + end % 2])
        assert at == (NO_END if to == NO_END else 2 * place[to // 2] + to % 2)


def chain_with_gaps(rng: np.random.Generator, n: int, ring: bool) -> tuple[NDArray[np.void], Links]:
    """Segments that follow each other with gaps of some cm, each linked to the next."""
    ends = np.zeros((n, 2), SEGMENT_END.dtype)
    ends["dd"], ends["zz"], ends["ff"], ends["kk"], ends["ll"] = 0.01, 0.01, 1e-4, 1e-7, 1e-5
    at = np.cumsum(rng.uniform(5, 30, n))
    ends["x"] = np.column_stack([at, at + rng.uniform(1, 4, n)])
    ends["z"] = rng.normal(0, 0.2, (n, 2))
    ends["along_x"] = [-1.0, 1.0]
    best = free(n)
    for i in range(n if ring else n - 1):
        best[2 * i + 1], best[2 * ((i + 1) % n)] = 2 * ((i + 1) % n), 2 * i + 1
    return ends, best


def test_chains_that_are_too_long_are_cut_at_their_weakest_links() -> None:
    rng = np.random.default_rng(11)
    limits, c = limits_of(cut_kernel)
    for n, ring, n_clones in (
        *((n, ring, 0) for n in (2, MAX_SEGMENTS, MAX_SEGMENTS + 1, 70, 128, 129) for ring in (False, True)),
        (MAX_SEGMENTS, False, 1),
        (100, True, 28),
        (100, True, 29),
    ):
        ends, best = chain_with_gaps(rng, n, ring)
        order = rng.permutation(n)
        place = np.argsort(order)
        moved = free(n + n_clones)
        for end, to in enumerate(best.tolist()):
            if to != NO_END:
                moved[2 * place[end // 2] + end % 2] = 2 * place[to // 2] + to % 2
        all_ends = np.concatenate([ends[order], np.zeros((n_clones, 2), SEGMENT_END.dtype)])
        clones = {i: n + i for i in range(n_clones)}
        found, _ = run(cut_kernel, all_ends, moved, clones)
        assert found.tolist() == cut_chains(limits, all_ends, clones, moved, c).tolist(), (n, ring, n_clones)
        is_cut = MAX_SEGMENTS < n + n_clones <= 128
        assert (found.tolist() != moved.tolist()) == is_cut
        if is_cut:
            assert (chain_numbers(found, clones) != NO_END)[:n].all()


@pytest.mark.parametrize(("n", "left"), [(MAX_SEGMENTS + 16, MAX_SEGMENTS), (MAX_SEGMENTS + 17, MAX_SEGMENTS + 1)])
def test_a_chain_is_cut_in_sixteen_rounds_at_most(n: int, left: int) -> None:
    """The weakest link is always the first one, so each round cuts off one segment."""
    ends, best = chain_with_gaps(np.random.default_rng(12), n, False)
    at = np.cumsum(np.linspace(80.0, 5.0, n))
    ends["x"] = np.column_stack([at, at + 2.0])
    ends["z"] = 0.0
    found, flags = run(cut_kernel, ends, best)
    limits, c = limits_of(cut_kernel)
    assert found.tolist() == cut_chains(limits, ends, {}, best, c).tolist()
    assert np.flatnonzero(found != best).tolist() == list(range(1, 33))
    assert (chain_numbers(found, {}, n)[16:] == 16).all()
    assert (n - 16, flags) == (left, 0)


def test_a_link_out_of_time_over_the_electrode_is_not_weak() -> None:
    """In time, z would differ by 16 cm there; out of time the longest way is the weakest link."""
    ends, best = chain_with_gaps(np.random.default_rng(13), MAX_SEGMENTS + 1, False)
    ends["z"] = np.where(np.arange(MAX_SEGMENTS + 1) <= 10, 8.0, -8.0)[:, None]
    ends[10, 1]["slope"], ends[11, 0]["slope"] = -0.1, 0.1
    found, _ = run(cut_kernel, ends, best)
    limits, c = limits_of(cut_kernel)
    assert found.tolist() == cut_chains(limits, ends, {}, best, c).tolist()
    longest = 2 * int((ends["x"][1:, 0] - ends["x"][:-1, 1]).argmax()) + 1
    assert np.flatnonzero(found != best).tolist() == [longest, longest + 1]
    assert (found[21], found[22]) == (22, 21)


def test_of_equally_weak_links_the_first_is_cut() -> None:
    n = MAX_SEGMENTS + 1
    ends, best = chain_with_gaps(np.random.default_rng(1), n, True)
    ends["x"] = np.column_stack([np.arange(n) * 0.0, np.arange(n) * 0.0 + 1.0])
    ends["x"][:, 0], ends["z"] = 6.0, 0.0
    found, _ = run(cut_kernel, ends, best)
    limits, c = limits_of(cut_kernel)
    assert found.tolist() == cut_chains(limits, ends, {}, best, c).tolist()
    # First the ring between its ends, then the chain behind its first segment.
    assert np.flatnonzero(found != best).tolist() == [0, 1, 2, 2 * n - 1]


def test_links_that_are_not_mutual_are_no_part_of_a_chain() -> None:
    n = MAX_SEGMENTS + 1
    ends, best = chain_with_gaps(np.random.default_rng(2), n, False)
    best[2 * n - 2] = NO_END
    found, flags = run(cut_kernel, ends, best)
    assert (found.tolist(), flags) == (best.tolist(), 0)


@pytest.mark.parametrize("kernel", [FREE_LINKS, cut_kernel], ids=["links", "cuts"])
def test_blocks_of_any_size_and_the_ptx_give_the_same_links(kernel: Algorithm | tuple[Algorithm, ...]) -> None:
    rng = np.random.default_rng(21)
    if kernel is FREE_LINKS:
        ends, best = spread_ends(rng, 20), free(20)
    else:
        (ends, best), (more, others) = (chain_with_gaps(rng, n, ring) for n, ring in ((33, True), (34, False)))
        best = np.concatenate([best, np.where(others == NO_END, NO_END, others + 2 * len(ends))])
        ends = np.concatenate([ends, more])
    expected = run(kernel, ends, best)
    assert expected[0].tolist() != best.tolist()
    for size, backward in ((1, False), (32, False), (32, True), (256, False), (256, True)):
        found = run(kernel, ends, best, launch=with_block_size(size, backward=backward, kernels=CHAIN.kernels))
        assert (found[0].tolist(), found[1]) == (expected[0].tolist(), expected[1]), (size, backward)
    machine = machine_of(module_of("90", CHAIN.kernels), backward=True)
    launcher = PtxLauncher(machine, 64)
    found = run(kernel, ends, best, launch=launcher, allocate=machine.allocate)
    assert (found[0].tolist(), found[1]) == (expected[0].tolist(), expected[1])
    assert [conflict.text for conflict in launcher.conflicts if not conflict.equal] == []
