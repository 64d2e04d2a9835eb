"""Kinds and weights of the events of a sample, from the truth of simulated events."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.readout import Readout
from hltnode.processing.framework.statistics import WeightSums
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.event_table import EventTable


class SampleKinds:
    """Numbers of events by kind. Recorded events have none."""

    def __init__(self) -> None:
        self.minimum_bias: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        self.unreadable = 0

    def add(self, events: EventTable, readout: Readout | None) -> NDArray[np.float64]:
        """Count events; returns the weights f64[events], 1 for events without such truth."""
        weights = np.ones(len(events))
        if readout is None or not readout.truth_types:
            return weights
        truths = events.of_types(readout.truth_types)
        for event in np.flatnonzero(truths.ends > truths.begins).tolist():
            try:
                truth = readout.sample_of(truths[event])
            except ProtocolError:
                self.unreadable += 1
                continue
            if truth is not None:
                (self.minimum_bias if truth.minimum_bias else self.others)[truth.kind] += 1
                weights[event] = truth.weight
        return weights

    def add_kinds(self, other: "SampleKinds") -> None:
        """Add the numbers of other events."""
        self.minimum_bias += other.minimum_bias
        self.others += other.others
        self.unreadable += other.unreadable

    def result(self, sums: WeightSums) -> dict[str, Any]:
        """The JSON object for rates. "warning": why the events are not minimum bias, None if they may be."""
        return {**self.described(sums), "warning": self._warning(sums.events) or None}

    def described(self, sums: WeightSums) -> dict[str, Any]:
        """The JSON object where any kind will do."""
        kinds = dict(self.minimum_bias + self.others)
        return {"kinds": kinds, "weighted": not sums.are_equal, "effective_events": sums.effective}

    def _warning(self, events: int) -> str:
        parts = []
        if number := sum(self.others.values()):
            names = ", ".join(self.others)
            which = f"the sample is {names}" if number == events else f"{number} of {events} events are {names}"
            parts.append(f"{which}, not minimum bias: the rates are not those of bunch crossings")
        if self.unreadable:
            parts.append(f"the kind and weight of {self.unreadable} events cannot be read")
        return "; ".join(parts)
