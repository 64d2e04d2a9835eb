"""Groups of channels that are dead or noisy in the hits of a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.monitoring.channel_monitor import HITS_PER_GROUP, ChannelMonitor
from hltnode.processing.framework.channel_groups import ChannelGroups, CountedChannels
from hltnode.processing.framework.histograms import HistogramShape, n_counts

N, ABSENT = 12, 11
OTHER = HistogramShape(name="other", bins=3, low=0.0, high=3.0)
HITS = HistogramShape(name="hits", bins=N + 2, low=0.0, high=N + 2.0)
SHAPES = (OTHER, HITS)
ENOUGH = HITS_PER_GROUP * (N - 1)
"""Hits of a comparison: group 11 does not exist."""
MEAN = HITS_PER_GROUP
DEAD, NOISY = 4, 7


def channels(masked: tuple[int, ...] = ()) -> CountedChannels:
    """A row of groups, numbered from 100; the histogram has them in reverse order between two bins of none."""
    index = np.arange(N)[:, None] + np.array([-2, -1, 1, 2])
    groups = ChannelGroups(
        name="ASIC",
        condition="masked_asics",
        numbers=np.arange(100, 100 + N),
        exists=np.arange(N) != ABSENT,
        neighbours=np.where((index >= 0) & (index < N), index, -1),
    )
    of_bin = np.array([-1, *range(N - 1, -1, -1), -1])
    return CountedChannels(groups=groups, histogram="hits", group_of_bin=of_bin, masked=groups.masked(masked))


def counts(hits: Mapping[int, int], default: int = MEAN) -> NDArray[np.uint32]:
    """New counts of both histograms; hits of groups that are not given are `default`."""
    found = np.zeros(n_counts(SHAPES), np.uint32)
    found[: OTHER.n_counts] = 10 * ENOUGH
    bins = found[OTHER.n_counts + 1 : -2]
    bins[1:-1] = [0 if group == ABSENT else hits.get(group, default) for group in range(N - 1, -1, -1)]
    return found


def monitor(masked: tuple[int, ...] = ()) -> ChannelMonitor:
    return ChannelMonitor(lambda _: (channels(masked),), SHAPES)


def found(of: ChannelMonitor) -> Mapping[str, tuple[int, ...]] | None:
    [reading] = of.readings()
    assert (reading.kind, reading.condition) == ("ASIC", "masked_asics")
    return reading.found


def test_a_dead_and_a_noisy_group_are_found_with_their_numbers() -> None:
    of = monitor()
    of.add(1, counts({DEAD: 0, NOISY: 20 * MEAN}))
    assert found(of) == {"dead": (104,), "noisy": (107,)}
    # Both are mended: the hits before have no part in the next comparison.
    of.add(1, counts({}))
    assert found(of) == {"dead": (), "noisy": ()}


def test_masked_groups_are_not_found() -> None:
    of = monitor((100 + DEAD, 100 + NOISY))
    of.add(1, counts({DEAD: 0, NOISY: 20 * MEAN}))
    assert found(of) == {"dead": (), "noisy": ()}


def test_nothing_is_compared_before_there_are_enough_hits_in_one_run() -> None:
    of = monitor()
    of.add(1, counts({0: MEAN - 1}))
    assert found(of) is None
    of.add(2, counts({0: MEAN - 1}))
    assert found(of) is None
    of.add(2, counts({0: 1}, default=0))
    assert found(of) == {"dead": (), "noisy": ()}
    assert of.readings()[0].hits == 2 * ENOUGH - 1


def test_another_run_begins_without_findings() -> None:
    of = monitor()
    of.add(1, counts({DEAD: 0, NOISY: 20 * MEAN}))
    of.add(2, counts({}, default=1))
    assert found(of) is None


def test_the_masks_are_those_of_the_constants_in_use() -> None:
    made: list[Mapping[str, NDArray[np.uint8]]] = []

    def of_constants(changed: Mapping[str, NDArray[np.uint8]]) -> tuple[CountedChannels, ...]:
        made.append(changed)
        return (channels((100 + DEAD,) if changed else ()),)

    of = ChannelMonitor(of_constants, SHAPES)
    of.add(1, counts({DEAD: 0}, default=2 * MEAN))
    assert found(of) == {"dead": (104,), "noisy": ()}
    of.use({"geometry": np.zeros(1, np.uint8)})
    of.add(2, counts({DEAD: 0}, default=2 * MEAN))
    assert found(of) == {"dead": (), "noisy": ()}
    assert [list(each) for each in made] == [[], ["geometry"]]


def test_a_chain_without_groups_has_no_readings() -> None:
    of = ChannelMonitor(lambda _: (), SHAPES)
    of.add(1, counts({}))
    assert of.readings() == ()
