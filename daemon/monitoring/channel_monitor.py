"""Compares the hits of groups of channels, such as ASICs, with their neighbours while events are processed.

Histograms count the hits of a sample of the events. Whenever enough hits of one kind have come, groups without hits or
with far too many are found, and the counts begin again. The masked channels are those of the run.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.channel_groups import CountedChannels, Finding, contradictions
from hltnode.processing.framework.histograms import HistogramShape

HITS_PER_GROUP = 500
"""Mean hits of a group in a comparison: groups with a twentieth of the mean are compared. With one event in a hundred
counted, it takes the hits of 20,000 to 66,000 simulated minimum-bias events."""
FINDINGS = {"dead": Finding.DEAD, "noisy": Finding.NOISY}
"""Those that a node can find: hits of masked channels reach no histogram."""

Constants = Mapping[str, NDArray[np.uint8]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelReading:
    """Groups of one kind that differ from their neighbours, by name of the finding: numbers as in the conditions.

    found: None before the first comparison of a run. hits: hits since the start of the node.
    """

    kind: str
    condition: str
    hits: int
    found: Mapping[str, tuple[int, ...]] | None


@dataclass(slots=True, eq=False)
class _Kind:
    """Hits of one kind since the last comparison. `bins`: their place in the counts of all histograms."""

    channels: CountedChannels
    bins: slice
    counts: NDArray[np.uint64]
    hits: int = 0
    found: Mapping[str, tuple[int, ...]] | None = None

    def add(self, counts: NDArray[np.uint32]) -> None:
        new = counts[self.bins]
        self.counts += new
        self.hits += int(new.sum())
        groups = self.channels.groups
        if int(self.counts.sum()) < HITS_PER_GROUP * np.count_nonzero(groups.exists):
            return
        found = contradictions(groups, self.channels.hits(self.counts), self.channels.masked)
        self.found = {
            name: tuple(each.number for each in found if each.finding == finding) for name, finding in FINDINGS.items()
        }
        self.counts[:] = 0

    def begin_run(self) -> None:
        self.counts[:] = 0
        self.found = None


class ChannelMonitor:
    """The groups of a node. `add` gets the counts of all histograms; other calls come from any thread.

    channels: makes the groups for changed constants (`Engine.channels`).
    """

    def __init__(
        self, channels: Callable[[Constants], Sequence[CountedChannels]], shapes: Sequence[HistogramShape]
    ) -> None:
        self._channels = channels
        self._lock = threading.Lock()
        self._run: int | None = None
        begins = np.cumsum([0, *(shape.n_counts for shape in shapes)]).tolist()
        # A counter of values below the range comes first.
        bins = {
            shape.name: slice(begin + 1, begin + 1 + shape.bins) for shape, begin in zip(shapes, begins, strict=False)
        }
        self._kinds = {
            each.groups.name: _Kind(each, bins[each.histogram], np.zeros(len(each.group_of_bin), np.uint64))
            for each in channels({})
        }

    def use(self, constants: Constants) -> None:
        """Channels have the masks of these constants from now on."""
        changed = self._channels(constants)
        with self._lock:
            for each in changed:
                self._kinds[each.groups.name].channels = each

    def add(self, run: int, counts: NDArray[np.uint32]) -> None:
        """Add the new counts of a run. Hits of another run that were not compared are dropped."""
        with self._lock:
            for kind in self._kinds.values():
                if run != self._run:
                    kind.begin_run()
                kind.add(counts)
            self._run = run

    def readings(self) -> tuple[ChannelReading, ...]:
        """All kinds, with the groups of their last comparisons."""
        with self._lock:
            return tuple(
                ChannelReading(kind=name, condition=kind.channels.groups.condition, hits=kind.hits, found=kind.found)
                for name, kind in self._kinds.items()
            )
