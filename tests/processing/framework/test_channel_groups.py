"""Groups of channels contradict the masks where their hits differ from those of their neighbours."""

from __future__ import annotations

import numpy as np

from hltnode.processing.framework.channel_groups import (
    MIN_EXPECTED,
    NOISE_FACTOR,
    ChannelGroups,
    Contradiction,
    Finding,
    contradictions,
    expected_hits,
)

N = 40
EXPECTED = 60


def groups(exists: np.ndarray | None = None) -> ChannelGroups:
    """A row of groups, numbered from 100."""
    index = np.arange(N)[:, None] + np.array([-2, -1, 1, 2])
    return ChannelGroups(
        name="ASIC",
        condition="masked_asics",
        numbers=np.arange(100, 100 + N),
        exists=np.ones(N, np.bool_) if exists is None else exists,
        neighbours=np.where((index >= 0) & (index < N), index, -1),
    )


def found(hits: np.ndarray, masked: tuple[int, ...] = (), of: ChannelGroups | None = None) -> list[tuple[int, Finding]]:
    of = of or groups()
    return [(each.number, each.finding) for each in contradictions(of, hits, of.masked(masked))]


def test_a_dead_a_noisy_and_a_good_masked_group_are_found_and_no_other() -> None:
    hits = np.full(N, EXPECTED)
    assert found(hits) == []
    hits[5], hits[20] = 0, int(NOISE_FACTOR * EXPECTED) + 1
    assert found(hits, (130,)) == [(105, Finding.DEAD), (120, Finding.NOISY), (130, Finding.ALIVE)]
    one = contradictions(groups(), hits, groups().masked(()))[0]
    assert one == Contradiction(kind="ASIC", number=105, finding=Finding.DEAD, hits=0, expected=EXPECTED)
    # One hit is not dead, and the bound of noise itself is not noise.
    hits[5], hits[20] = 1, int(NOISE_FACTOR * EXPECTED)
    assert found(hits) == []


def test_masked_groups_are_no_neighbours_and_may_be_dead_or_noisy() -> None:
    hits = np.full(N, EXPECTED)
    hits[[10, 11]] = 0, 100 * EXPECTED
    assert found(hits, (110, 111)) == []
    # Groups 9 and 12 keep two good neighbours each.
    assert (expected_hits(groups(), hits, groups().masked((110, 111))) == EXPECTED).all()
    hits[[8, 9, 11, 12]] = 7 * EXPECTED
    # Group 10 has no neighbour that is not masked: nothing is expected of it.
    assert found(hits, (108, 109, 111, 112)) == []


def test_too_few_hits_and_groups_that_do_not_exist_tell_nothing() -> None:
    hits = np.full(N, int(MIN_EXPECTED) - 1)
    hits[5] = 0
    assert found(hits, (130,)) == []
    hits = np.full(N, int(MIN_EXPECTED))
    hits[5] = 0
    assert found(hits, (130,)) == [(105, Finding.DEAD), (130, Finding.ALIVE)]
    exists = np.ones(N, np.bool_)
    exists[[5, 30]] = False
    assert found(hits, (130,), groups(exists)) == []
    # Without a neighbour nothing is expected, so the least number of hits decides.
    alone = ChannelGroups(
        name="ASIC", condition="", numbers=np.array([1]), exists=np.ones(1, np.bool_), neighbours=np.full((1, 2), -1)
    )
    limit = int(NOISE_FACTOR * MIN_EXPECTED)
    assert [found(np.array([n]), (), alone) for n in (0, limit, limit + 1)] == [[], [], [(1, Finding.NOISY)]]
