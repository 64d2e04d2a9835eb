"""The feeders and sources that the node lacks, from `missing_sources` of /status."""

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
    return [_row(entry, now_s) for entry in status.get("missing_sources", ())]


def _row(entry: Mapping[str, Any], now_s: float) -> MissingRow:
    names = [str(entry[key]) for key in ("name", "feeder") if entry.get(key) is not None]
    source = entry.get("source_id", entry.get("source"))
    if source is not None:
        names.append(f"source 0x{source:04x}" if isinstance(source, int) else f"source {source}")
    since = entry.get("since")
    text = "" if since is None else f"{utc(since)} UTC ({seconds(max(0.0, now_s - since))})"
    return MissingRow(", ".join(names), text, str(entry.get("reason") or ""))
