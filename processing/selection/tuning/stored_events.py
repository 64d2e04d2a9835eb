"""The candidates of events that lines with some choice of cuts may select, kept in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.readout import Readout
from hltnode.processing.selection.evaluation.lines import Bools
from hltnode.processing.selection.studies.decided_events import DecidedEvents
from hltnode.processing.selection.studies.sample_truth import SampleKinds
from hltnode.processing.selection.tuning.errors import TuningError
from hltnode.processing.selection.tuning.tunable_line import TunableLine

Places = NDArray[np.int64]


@dataclass(slots=True)
class _Parts:
    """The stored candidates of one line, a batch at a time."""

    event: list[Places] = field(default_factory=list)
    values: list[list[NDArray[Any]]] = field(default_factory=list)
    passes: list[Bools] = field(default_factory=list)
    """bool[events]: the scalers of the line let the event pass."""


@dataclass(frozen=True, slots=True)
class StoredLine:
    """The stored candidates of a line. event: i64[candidates]; values: the roots of the line; passes: bool[events]."""

    event: Places
    values: tuple[NDArray[Any], ...]
    passes: Bools


@dataclass(frozen=True, slots=True)
class StoredEvents:
    """Events of several samples, one sample behind another.

    sample: i64[events], the sample of each event. weights: f64[events]. fired: bool[events, lines], the decisions of
    the configuration. lines: the stored candidates of each tunable line. kinds: the kinds of simulated events of each
    sample.
    """

    sample: Places
    weights: NDArray[np.float64]
    fired: Bools
    lines: tuple[StoredLine, ...]
    kinds: tuple[SampleKinds, ...]

    @property
    def n_events(self) -> int:
        """Number of events of all samples."""
        return len(self.weights)


class EventStore:
    """Takes the events of samples in the order in which they are decided."""

    def __init__(self, lines: Sequence[TunableLine], readout: Readout | None) -> None:
        self._lines = tuple(lines)
        self._readout = readout
        self._parts = [_Parts() for _ in lines]
        self._sample: list[Places] = []
        self._weights: list[NDArray[np.float64]] = []
        self._fired: list[Bools] = []
        self._kinds: list[SampleKinds] = []
        self._n = 0

    def begin_sample(self) -> None:
        """The next events belong to another sample."""
        self._kinds.append(SampleKinds())

    def add(self, decided: DecidedEvents) -> None:
        """Store the events of a batch."""
        n = len(decided.events)
        self._weights.append(self._kinds[-1].add(decided.events, self._readout))
        self._sample.append(np.full(n, len(self._kinds) - 1))
        self._fired.append(decided.fired)
        for line, parts in zip(self._lines, self._parts, strict=True):
            event, values = decided.candidate_values(line.line, line.roots, line.condition)
            parts.event.append(event + self._n)
            parts.values.append(values)
            parts.passes.append(decided.passes_scalers(line.line))
        self._n += n

    def stored(self) -> StoredEvents:
        """All events. Raises TuningError without any."""
        if not self._n:
            raise TuningError("the samples have no events")
        return StoredEvents(
            np.concatenate(self._sample),
            np.concatenate(self._weights),
            np.concatenate(self._fired),
            tuple(
                StoredLine(
                    np.concatenate(parts.event),
                    tuple(np.concatenate(values) for values in zip(*parts.values, strict=True)),
                    np.concatenate(parts.passes),
                )
                for parts in self._parts
            ),
            tuple(self._kinds),
        )
