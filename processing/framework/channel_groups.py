"""Groups of channels whose hits in data contradict the masks of the conditions: dead, noisy, or masked but alive.

A group, such as an ASIC or a SiPM, is compared with its neighbours: groups that see the same number of particles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

MIN_EXPECTED = 25.0
"""Fewer expected hits tell nothing: a good group with 25 has none in one of 10^11 cases."""
NOISE_FACTOR = 6.0
"""A group with more than this many times the hits of its neighbours is noisy. No group of 2,400 simulated minimum-bias
events is."""


class Finding(StrEnum):
    """What the data say of a group."""

    DEAD = "no hit"
    NOISY = "too many hits"
    ALIVE = "masked, but has hits"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelGroups:
    """Groups of one kind.

    name: of the kind. condition: the mask. numbers: i64[n], as in the mask. exists: bool[n], groups of the detector.
    neighbours: i64[n, k], indices of groups, -1 for none.
    """

    name: str
    condition: str
    numbers: NDArray[np.int64]
    exists: NDArray[np.bool_]
    neighbours: NDArray[np.int64]

    def masked(self, numbers: Sequence[int]) -> NDArray[np.bool_]:
        """Whether each group is masked, bool[n]."""
        return np.isin(self.numbers, np.array(numbers, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedChannels:
    """Groups whose hits a histogram counts, without those of masked channels.

    group_of_bin: i64[n_bins], index of the group of each bin, -1 for none. masked: bool[n], groups whose channels are
    all masked.
    """

    groups: ChannelGroups
    histogram: str
    group_of_bin: NDArray[np.int64]
    masked: NDArray[np.bool_]

    def hits(self, bins: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
        """The hits of each group, i64[n], of the bins u[n_bins]."""
        known = self.group_of_bin >= 0
        n = len(self.groups.numbers)
        return np.bincount(self.group_of_bin[known], bins[known], n).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A group whose hits contradict the conditions. hits: its hits; expected: the median of its neighbours."""

    kind: str
    number: int
    finding: Finding
    hits: int
    expected: float


def contradictions(
    groups: ChannelGroups, hits: NDArray[np.int64], masked: NDArray[np.bool_]
) -> tuple[Contradiction, ...]:
    """The groups whose hits, i64[n], contradict the masks, bool[n]; hits are counted without masks."""
    expected = expected_hits(groups, hits, masked)
    enough = groups.exists & (expected >= MIN_EXPECTED)
    found = {
        Finding.DEAD: enough & ~masked & (hits == 0),
        Finding.NOISY: groups.exists & ~masked & (hits > NOISE_FACTOR * np.fmax(expected, MIN_EXPECTED)),
        Finding.ALIVE: enough & masked & (hits > expected / NOISE_FACTOR) & (hits < NOISE_FACTOR * expected),
    }
    return tuple(
        Contradiction(
            kind=groups.name,
            number=int(groups.numbers[at]),
            finding=finding,
            hits=int(hits[at]),
            expected=float(expected[at]),
        )
        for finding, those in found.items()
        for at in np.flatnonzero(those)
    )


def expected_hits(groups: ChannelGroups, hits: NDArray[np.int64], masked: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The median of the hits of the neighbours that exist and are not masked, f64[n]; 0 without any."""
    usable = groups.exists & ~masked
    of_neighbours = np.where(
        (groups.neighbours >= 0) & usable[groups.neighbours], hits[groups.neighbours].astype(np.float64), np.nan
    )
    expected = np.zeros(len(hits))
    has_any = ~np.isnan(of_neighbours).all(axis=1)
    expected[has_any] = np.nanmedian(of_neighbours[has_any], axis=1)
    return expected
