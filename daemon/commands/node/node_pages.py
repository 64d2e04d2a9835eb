"""Readings of the HTTP pages of a node, and the changes between two readings, for `hltnode top`."""

import json
import time
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

# A node answers within milliseconds; an unreachable node must not delay the others.
ANSWER_SECONDS = 3.0
MAX_PAGE_BYTES = 64 << 20
_COUNTS = {
    "events": ("events", "processed"),
    "accepted": ("events", "accepted"),
    "meps": ("accounting", "meps", "opened"),
    "fragments": ("accounting", "fragments", "received"),
}
"""Location in /status of the counts whose rates are shown."""
DEAD_TIME = "hltnode_dead_time_seconds"


class NodeUnreachableError(ValueError):
    """A node does not answer; the message names its address."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a node: `dead_seconds` by reason since its start."""

    at: float
    """Time of the reading (monotonic, s)."""
    status: dict[str, Any]
    dead_seconds: dict[str, float] = field(default_factory=dict)


def read_pages(url: str) -> Pages:
    """/status and /metrics of a node. Raises NodeUnreachableError."""
    base = url.rstrip("/")
    try:
        status = json.loads(_get(f"{base}/status"))
        now = time.monotonic()
        families = text_string_to_metric_families(_get(f"{base}/metrics"))
        dead = {
            sample.labels["reason"]: sample.value
            for family in families
            if family.name == DEAD_TIME
            for sample in family.samples
            if sample.name == f"{DEAD_TIME}_total"
        }
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise NodeUnreachableError(f"{url}: {reason}: is the node running? Its http.port is expected") from error
    if not isinstance(status, dict) or "state" not in status:
        raise NodeUnreachableError(f"{url}: not a node: the answer has no state")
    return Pages(now, status, dead)


def _get(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError("expected an address such as http://127.0.0.1:9105")
    with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
        content: bytes = answer.read(MAX_PAGE_BYTES)
    return content.decode()


def _count(pages: Pages, path: tuple[str, ...]) -> int:
    value: Any = pages.status
    for name in path:
        value = value[name]
    return int(value)


def _error_banks(pages: Pages) -> int:
    return sum(pages.status["error_banks"]["by_type"].values())


def describe(before: Pages | None, now: Pages) -> dict[str, Any]:
    """The row of `hltnode top` for a node.

    Rates and dead time are those between two readings; None without an earlier reading, or after a restart of the node.
    """
    status = now.status
    if before is not None and before.status["session"] != status["session"]:
        before = None
    seconds = None if before is None else now.at - before.at
    per_second = {
        name: None if before is None or not seconds else (_count(now, path) - _count(before, path)) / seconds
        for name, path in _COUNTS.items()
    }
    per_second["error_banks"] = (
        None if before is None or not seconds else (_error_banks(now) - _error_banks(before)) / seconds
    )
    dead = {
        reason: None
        if before is None or not seconds
        else min(1.0, max(0.0, (value - before.dead_seconds.get(reason, 0.0)) / seconds))
        for reason, value in now.dead_seconds.items()
    }
    lines = sorted(status["events"]["accepted_by_line"].items(), key=lambda item: -item[1])
    # Only a MEP that was also open at the earlier reading: fragments of the others are still in flight.
    oldest = status["oldest_open_mep"]
    if before is None or oldest is None or (before.status["oldest_open_mep"] or {}).get("mep") != oldest["mep"]:
        oldest = None
    return {
        "node": status["node"],
        "state": status["state"],
        "run": status["run"],
        "backend": status["backend"],
        "tck": status["tck"],
        "per_second": per_second,
        "events": status["events"]["processed"],
        "accepted": status["events"]["accepted"],
        "slots": status["slots"],
        "dead_time": dead,
        "feeders": sum(feeder["connected"] for feeder in status["feeders"]),
        "missing_feeders": status.get("missing_feeders", []),
        "sources": status["sources"],
        "silent_sources": status["silent_sources"],
        "lagging_sources": [] if oldest is None else oldest["missing"],
        "error_banks": status["error_banks"],
        "conditions": status.get("conditions", {}),
        "output_free_bytes": status["output_free_bytes"],
        "lines": {line: count for line, count in lines if count},
    }
