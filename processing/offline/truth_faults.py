"""Counts of events whose Monte Carlo truth does not match them."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

_NAMED_EVENTS = 5


@dataclass(slots=True)
class TruthFaults:
    """Events whose truth does not match, by reason; the first few by name.

    ids, lost_ids: ids of hits in the truth that is used, and how many of them are not hits of the event.
    """

    counts: Counter[StrEnum] = field(default_factory=Counter)
    named: list[str] = field(default_factory=list)
    ids: int = 0
    lost_ids: int = 0

    @property
    def events(self) -> int:
        return self.counts.total()

    def add(self, fault: StrEnum, event: str, detail: str) -> None:
        """Count an event, given by its name."""
        self.counts[fault] += 1
        if len(self.named) < _NAMED_EVENTS:
            self.named.append(f"{event}: {fault} ({detail})")

    def result(self) -> dict[str, Any]:
        """The JSON object "truth"."""
        return {
            "events_left_out": self.events,
            "reasons": {fault.name.lower(): n for fault, n in self.counts.items()},
            "named": self.named,
        }
