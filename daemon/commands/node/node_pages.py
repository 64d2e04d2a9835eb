"""Readings of the HTTP pages of a node, and the changes between two readings, for `hltnode top`."""

import re
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hltnode.daemon.common.bounded_get import NoAnswerError, bounded_get

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
_DEAD_TIME = re.compile(r'^hltnode_dead_time_seconds_total\{reason="([a-z_]{1,40})"\} ([0-9.e+-]{1,30})$', re.MULTILINE)


class NodeUnreachableError(ValueError):
    """A node does not answer; the message names its address."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a node: `dead_seconds` by reason since its start."""

    at: float
    """Time of the reading (monotonic, s)."""
    status: dict[str, Any]
    dead_seconds: dict[str, float] = field(default_factory=dict)


class _Connected(msgspec.Struct):
    connected: bool


class _Events(msgspec.Struct):
    processed: int
    accepted: int
    accepted_by_line: dict[str, int]


class _Opened(msgspec.Struct):
    opened: int


class _Received(msgspec.Struct):
    received: int


class _Accounting(msgspec.Struct):
    meps: _Opened
    fragments: _Received


class _ErrorBanks(msgspec.Struct):
    type: str
    source: int
    banks: int


class _AllErrorBanks(msgspec.Struct):
    by_type: dict[str, int]
    most: list[_ErrorBanks]


class _OpenMep(msgspec.Struct):
    mep: int
    missing: list[int]


class _Condition(msgspec.Struct):
    unit: str
    configured: float
    measured: float | None
    tolerance: float
    is_off: bool
    followed: bool


class _Channels(msgspec.Struct):
    dead: list[int] = []
    n_dead: int = 0
    noisy: list[int] = []
    n_noisy: int = 0


class _MissingFeeder(msgspec.Struct):
    run: int
    feeder: str | None
    since: str | None
    silent_seconds: float | None


class _LateSource(msgspec.Struct):
    source: int
    slices: int


class _Streaming(msgspec.Struct):
    slices: int
    late_slices: int
    windows: int
    dropped: dict[str, int]
    late_sources: list[_LateSource]
    seconds: dict[str, float]
    faults: dict[str, int]
    flagged: dict[str, int]


class _Combiner(msgspec.Struct):
    endpoint: str
    session: str | None
    answers: bool
    silent_seconds: float
    oldest_seconds: float
    held_bytes: int
    max_bytes: int
    held_slices: int
    slices: dict[str, int]
    faults: dict[str, int]


class _Status(msgspec.Struct):
    """The types of the shown parts of /status: another program may listen at the address."""

    node: str
    session: str
    state: str
    run: int | None
    backend: str
    tck: str
    feeders: list[_Connected]
    sources: int
    silent_sources: list[int]
    oldest_open_mep: _OpenMep | None
    output_free_bytes: int | None
    slots: dict[str, int]
    events: _Events
    accounting: _Accounting
    error_banks: _AllErrorBanks
    conditions: dict[str, _Condition] = {}
    channels: dict[str, _Channels] = {}
    missing_feeders: list[_MissingFeeder] = []
    n_missing_feeders: int = 0
    streaming: _Streaming | None = None
    combiner: _Combiner | None = None


def read_pages(url: str) -> Pages:
    """/status and /metrics of a node. Raises NodeUnreachableError."""
    base = url.rstrip("/")
    try:
        raw = bounded_get(f"{base}/status", seconds=ANSWER_SECONDS, most_bytes=MAX_PAGE_BYTES)
        now = time.monotonic()
        metrics = bounded_get(f"{base}/metrics", seconds=ANSWER_SECONDS, most_bytes=MAX_PAGE_BYTES)
    except NoAnswerError as error:
        raise NodeUnreachableError(f"{url}: {error}: is the node running? Its http.port is expected") from error
    try:
        status = msgspec.json.decode(raw, type=dict[str, Any])
        msgspec.convert(status, _Status)
        dead = {reason: float(value) for reason, value in _DEAD_TIME.findall(metrics.decode())}
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NodeUnreachableError(f"{url}: not a node: {error}") from error
    return Pages(now, status, dead)


def _count(pages: Pages, path: tuple[str, ...]) -> int:
    value: Any = pages.status
    for name in path:
        value = value[name]
    return int(value)


def _error_banks(pages: Pages) -> int:
    return sum(pages.status["error_banks"]["by_type"].values())


def _streaming(before: Pages | None, now: Pages, seconds: float | None) -> dict[str, Any] | None:
    """Slices and windows of a streaming chain; None for another one.

    Rates and the shares of the time of the slices are those between two readings; None where there was no slice.
    """
    of = now.status.get("streaming")
    if of is None:
        return None
    earlier = None if before is None else before.status.get("streaming")

    def rate(value: Any) -> float | None:
        return None if earlier is None or not seconds else (value(of) - value(earlier)) / seconds

    taken = rate(lambda each: each["seconds"]["taken"])
    return {
        "per_second": {
            "slices": rate(lambda each: each["slices"]),
            "windows": rate(lambda each: each["windows"]),
            "late": rate(lambda each: each["late_slices"]),
            "dropped": rate(lambda each: sum(each["dropped"].values())),
        },
        "share": {
            name: None if not taken else (rate(lambda each: each["seconds"][name]) or 0.0) / taken  # noqa: B023
            for name in ("kept", "late", "dropped")
        },
        "late_sources": of["late_sources"],
        "faults": {name: n for name, n in of["faults"].items() if n},
        "flagged": of["flagged"],
    }


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
        "n_missing_feeders": status.get("n_missing_feeders", 0),
        "sources": status["sources"],
        "silent_sources": status["silent_sources"],
        "lagging_sources": [] if oldest is None else oldest["missing"],
        "error_banks": status["error_banks"],
        "conditions": status.get("conditions", {}),
        "channels": status.get("channels", {}),
        "output_free_bytes": status["output_free_bytes"],
        "streaming": _streaming(before, now, seconds),
        "combiner": status.get("combiner"),
        "lines": {line: count for line, count in lines if count},
    }
