"""The summary of an event for luminosity: counters that a chain fills and the outputs write."""

from dataclasses import dataclass

from hltnode.processing.framework.collections import U32, Column, DeclarationError
from hltnode.protocol.raw_data.lumi_summary import CounterRange


@dataclass(frozen=True, slots=True)
class EventSummary:
    """Counters of a luminosity summary.

    column: u32[event][counter], output of the sequence, numbers as they are stored. counters: their names and ranges.

    Raises DeclarationError if the column has another type or width.
    """

    column: Column
    counters: tuple[CounterRange, ...]

    def __post_init__(self) -> None:
        if self.column.dtype != U32 or self.column.width != len(self.counters):
            raise DeclarationError(
                f"{self.column.name}: expected u32 for {len(self.counters)} counters of a summary, found "
                f"{self.column.dtype} for {self.column.width}"
            )
