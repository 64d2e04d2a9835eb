"""Segments between two linked ends are part of their chain: against a search over all pairs, and limit by limit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.tpc.flags import CROWDED_ENDS
from hltnode.processing.alice.tpc.merging.collections import MAX_FREE_ENDS, NO_END, SEGMENT_END
from hltnode.processing.alice.tpc.merging.links.insert_segments import insert_segments
from hltnode.processing.alice.tpc.merging.links.sort_free_ends import sort_free_ends
from tests.processing.alice.merged_events import two_ends
from tests.processing.alice.merging_oracle import with_insertions
from tests.processing.alice.tpc.merging.test_free_ends import Links, free, piece_behind, run, spread_ends
from tests.processing.framework.kernel_runner import Allocate, Launch, host_memory, with_block_size
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

C = {each.name: each.value for each in insert_segments.constants}


def inserted(
    ends: NDArray[np.void],
    best: Links,
    clones: dict[int, int] | None = None,
    launch: Launch | None = None,
    allocate: Allocate = host_memory,
) -> tuple[Links, int]:
    return run((sort_free_ends, insert_segments), ends, best, clones, launch, allocate)


def linked(n: int, *pairs: tuple[int, int]) -> Links:
    best = free(n)
    for a, b in pairs:
        best[a], best[b] = b, a
    return best


def between(begin: float = 10.0, length: float = 15.0, gap: float = 40.0, helix_of: int = 0) -> NDArray[np.void]:
    """Segments 0 and 2 whose ends 1 and 4 are linked, and segment 1 on the helix between them. helix_of: the only
    segment whose slope is that of the helix."""
    ends = np.concatenate([piece_behind(begin, length), two_ends(gap, 100.0, 1, 0)[1:]])
    ends[2 - helix_of]["slope"] += 1.0
    return ends


def is_inserted(ends: NDArray[np.void], best: Links | None = None) -> bool:
    """Whether segment 1 becomes part of the chain; the same as in a search over all pairs."""
    best = linked(3, (1, 4)) if best is None else best
    found, flags = inserted(ends, best)
    assert found.tolist() == with_insertions(ends, np.zeros(len(ends), bool), best, C).tolist()
    assert flags == 0
    if found.tolist() == best.tolist():
        return False
    assert found.tolist() == linked(3, (1, 2), (3, 4)).tolist()
    return True


@pytest.mark.parametrize("helix_of", [0, 2])
def test_a_segment_between_two_linked_ends_joins_their_chain(helix_of: int) -> None:
    assert is_inserted(between(helix_of=helix_of))
    # As a segment that follows the second end, and one that leads the opposite way.
    turned = between(helix_of=helix_of)[:, ::-1].copy()
    found, _ = inserted(turned, linked(3, (0, 5)))
    assert found.tolist() == linked(3, (0, 3), (2, 5)).tolist()


def test_every_limit_of_an_insertion_decides_alone() -> None:
    for side in (0, 1):
        for name, limit in (("z", C["piece_z"]), ("slope", C["piece_slope"])):
            for share, expected in ((0.98, True), (1.02, False), (-0.98, True), (-1.02, False)):
                ends = between()
                ends[1, side][name] += share * limit
                assert is_inserted(ends) == expected, (side, name, share)
        across = 0.1 if side == 0 else 0.25
        for share, expected in ((0.98, True), (1.02, False)):
            ends = between()
            ends[1, side]["x"] += share * C["piece_distance"] * np.sin(across)
            ends[1, side]["y"] -= share * C["piece_distance"] * np.cos(across)
            assert is_inserted(ends) == expected, (side, share)
        for angle, expected in ((0.7, True), (0.8, False)):
            ends = between()
            x, y = float(ends[1, side]["along_x"]), float(ends[1, side]["along_y"])
            ends[1, side]["along_x"] = np.cos(angle) * x - np.sin(angle) * y
            ends[1, side]["along_y"] = np.sin(angle) * x + np.cos(angle) * y
            assert is_inserted(ends) == expected, (side, angle)
    overlap = C["max_overlap"]
    for begin, expected in ((-overlap + 0.1, True), (-overlap - 0.1, False), (19.4, True), (19.6, False)):
        assert is_inserted(between(begin)) == expected, begin
    for end, expected in ((40.0 + overlap - 0.1, True), (40.0 + overlap + 0.1, False)):
        assert is_inserted(between(10.0, end - 10.0)) == expected, end
    for length, expected in ((49.5, True), (50.5, False)):
        assert is_inserted(between(length=length, gap=80.0)) == expected
    # The second end of the link lies behind the first one.
    for gap, expected in ((0.5, True), (-0.5, False)):
        assert is_inserted(between(-2.0, 6.0, gap)) == expected


def test_only_a_segment_without_links_is_inserted_and_only_into_a_link() -> None:
    ends = np.concatenate([between(), between()[:1]])
    ends[3]["z"] += 100.0
    expected = linked(4, (1, 2), (3, 4)).tolist()
    assert inserted(ends, linked(4, (1, 4)))[0].tolist() == expected
    for other in ((2, 6), (3, 7)):
        best = linked(4, (1, 4), other)
        assert inserted(ends, best)[0].tolist() == best.tolist()
    one_sided = linked(4, (1, 4))
    one_sided[4] = NO_END
    assert 2 not in inserted(ends, one_sided)[0].tolist()
    assert inserted(ends, linked(4, (1, 4)), {3: 1})[0].tolist() == linked(4, (1, 4)).tolist()
    assert inserted(ends, linked(4, (1, 4)), {1: 3})[0].tolist() == expected
    for value in (np.nan, np.inf, 1e30):
        for segment, side in ((0, 1), (1, 0), (1, 1)):
            strange = ends.copy()
            strange[segment, side]["z"] = value
            assert inserted(strange, linked(4, (1, 4)))[0].tolist() == linked(4, (1, 4)).tolist()
    assert inserted(ends[:0], free(0))[0].tolist() == []


def test_the_nearest_segment_wins_and_of_equal_ones_the_first_end() -> None:
    """Two segments for a link; then two links for a segment."""
    far = between()[1:2]
    far["z"] += 1.0
    for others, expected in (([0, 1, 2, 3], 2), ([0, 3, 2, 1], 6)):
        ends = np.concatenate([between(), far])[others]
        assert inserted(ends, linked(4, (1, 4)))[0][1] == expected
    same = np.concatenate([between(), between()[1:2]])
    assert inserted(same, linked(4, (1, 4)))[0].tolist() == linked(4, (1, 2), (3, 4)).tolist()
    for shift in (0.0, 0.5, -0.5):
        ends = np.concatenate([between(), between()[[0, 2]]])
        ends["z"][3:] += shift
        assert inserted(ends, linked(5, (1, 4), (7, 8)))[0].tolist() == linked(5, (1, 2), (3, 4), (7, 8)).tolist()
    nearer = np.concatenate([between(), between()[[0, 2]]])
    nearer["z"][[0, 2]] += 0.5
    assert inserted(nearer, linked(5, (1, 4), (7, 8)))[0].tolist() == linked(5, (1, 4), (7, 2), (3, 8)).tolist()


def test_of_both_ends_of_a_link_the_better_one_takes_its_segment() -> None:
    """Segment 1 lies on the helix of the first end, segment 3 on that of the second one, 13 cm from it."""
    for first, second, expected in (
        (0.0, 0.5, [(1, 2), (3, 4)]),
        (0.5, 0.0, [(4, 7), (6, 1)]),
        (0, 0, [(1, 2), (3, 4)]),
    ):
        ends = np.concatenate([between(), between(12.0)[1:2]])
        ends[2, 0]["slope"] = 0.4
        ends[3]["slope"], ends[3]["z"] = [0.4, -0.4], float(ends[2, 0]["z"]) + 0.4 * np.array([28.0, 13.0])
        ends[1]["z"] += first
        ends[3]["z"] += second
        assert inserted(ends, linked(4, (1, 4)))[0].tolist() == linked(4, *expected).tolist()


def test_an_end_among_too_many_free_ends_takes_no_segment_and_that_is_noted() -> None:
    n = MAX_FREE_ENDS // 2 + 3
    for crowded in (False, True):
        ends = np.zeros((n, 2), SEGMENT_END.dtype)
        ends["x"], ends["along_x"] = 100.0, 1.0
        ends["slope"] = np.arange(2 * n).reshape(-1, 2) * 10.0
        ends[:3] = between()
        # The outer ends of the chain and one more have no direction: they are no free ends.
        ends["along_x"][0, 0] = ends["along_x"][2, 1] = ends["along_x"][-1, 0] = 0.0
        ends["along_x"][-1, 1] = float(crowded)
        best = linked(n, (1, 4))
        found, flags = inserted(ends, best)
        assert found.tolist() == (best if crowded else linked(n, (1, 2), (3, 4))).tolist()
        assert flags == (CROWDED_ENDS.mask if crowded else 0)


def pieces_in_links(rng: np.random.Generator) -> tuple[NDArray[np.void], Links]:
    """Three segments on each of 80 circles, of which the outer two are linked."""
    ends, best = spread_ends(rng, 240), free(240)
    for i in range(0, 240, 3):
        if rng.random() < 0.8:
            best[2 * i + 1], best[2 * i + 4] = 2 * i + 4, 2 * i + 1
    return ends, best


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_insertions_are_those_of_a_search_over_all_pairs_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends, best = pieces_in_links(rng)
    clones = {int(a): int(a) + 1 for a in range(0, 240, 24)}
    left_out = np.isin(np.arange(240), list(clones.values()))
    found, flags = inserted(ends, best, clones)
    assert found.tolist() == with_insertions(ends, left_out, best, C).tolist()
    assert flags == 0
    assert (found != best).sum() > 80
    order = rng.permutation(240)
    place = np.argsort(order)

    def moved(links: Links) -> list[int]:
        other = free(240)
        for end, to in enumerate(links.tolist()):
            if to != NO_END:
                other[2 * place[end // 2] + end % 2] = 2 * place[to // 2] + to % 2
        numbers: list[int] = other.tolist()
        return numbers

    of_clones = {int(place[a]): int(place[b]) for a, b in clones.items()}
    assert inserted(ends[order], np.array(moved(best)), of_clones)[0].tolist() == moved(found)


def test_blocks_of_any_size_and_the_ptx_insert_the_same_segments() -> None:
    ends, best = pieces_in_links(np.random.default_rng(4))
    ends, best = ends[:18], np.where(best < 36, best, NO_END)[:36]
    expected = inserted(ends, best)
    assert expected[0].tolist() != best.tolist()
    for size, backward in ((1, False), (32, False), (32, True), (256, False), (256, True)):
        found = inserted(ends, best, launch=with_block_size(size, backward=backward, kernels=CHAIN.kernels))
        assert (found[0].tolist(), found[1]) == (expected[0].tolist(), expected[1]), (size, backward)
    machine = machine_of(module_of("90", CHAIN.kernels), backward=True)
    launcher = PtxLauncher(machine, 64)
    found = inserted(ends, best, launch=launcher, allocate=machine.allocate)
    assert (found[0].tolist(), found[1]) == (expected[0].tolist(), expected[1])
    assert [conflict.text for conflict in launcher.conflicts if not conflict.equal] == []
