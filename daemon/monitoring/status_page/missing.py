"""The feeders that the node lacks: `missing_feeders` of /status in words, for the pages and `hltnode top`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hltnode.daemon.monitoring.status_page.numbers import seconds

SHOWN_MISSING = 50


@dataclass(frozen=True, slots=True)
class MissingRow:
    """A feeder that left its run with more to send; an empty time is not known."""

    name: str
    since: str
    reason: str

    def __str__(self) -> str:
        since = f" since {self.since}" if self.since else ""
        return f"{self.name}{since}: {self.reason}"


def missing_rows(missing_feeders: Iterable[Mapping[str, Any]]) -> Sequence[MissingRow]:
    """One row for each entry."""
    return [_row(entry) for entry in missing_feeders]


def _row(entry: Mapping[str, Any]) -> MissingRow:
    run = entry["run"]
    if entry["feeder"] is None:
        return MissingRow("all feeders", "", f"none of run {run} has come back since the node started")
    since = "" if entry["since"] is None else f"{entry['since']} ({seconds(entry['silent_seconds'])})"
    return MissingRow(entry["feeder"], since, f"run {run} is open and has more to come from it")
