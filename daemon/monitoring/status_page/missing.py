"""The feeders and sources that the node lacks, from `missing_sources` and `missing_feeders` of /status."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hltnode.daemon.monitoring.status_page.numbers import seconds, utc

SHOWN_MISSING = 50


@dataclass(frozen=True, slots=True)
class MissingRow:
    """A feeder or a source that does not deliver; empty texts are not known."""

    name: str
    since: str
    reason: str


def missing_rows(status: Mapping[str, Any], now_s: float) -> Sequence[MissingRow]:
    """One row for each entry; none if the status has no such list."""
    return [_row(entry, now_s) for key in ("missing_feeders", "missing_sources") for entry in status.get(key, ())]


def _row(entry: Mapping[str, Any], now_s: float) -> MissingRow:
    names = [str(entry[key]) for key in ("name", "feeder") if entry.get(key) is not None]
    source = entry.get("source_id", entry.get("source"))
    if source is not None:
        names.append(f"source 0x{source:04x}" if isinstance(source, int) else f"source {source}")
    if not names:
        # The node has started again, and knows the run of its journal only.
        names.append("all feeders")
    run = "" if entry.get("run") is None else f" of run {entry['run']}"
    return MissingRow(f"{', '.join(names)}{run}", _since(entry, now_s), str(entry.get("reason") or ""))


def _since(entry: Mapping[str, Any], now_s: float) -> str:
    """The time and its distance; the time is a Unix time or a text."""
    since = entry.get("since")
    if since is None:
        return ""
    if isinstance(since, str):
        silent_s = entry.get("silent_seconds")
        return since if silent_s is None else f"{since} ({seconds(silent_s)})"
    return f"{utc(since)} UTC ({seconds(max(0.0, now_s - since))})"
