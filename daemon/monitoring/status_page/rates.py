"""Rates of the last seconds for the status page, from the counters (no I/O, no clock)."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from hltnode.daemon.common.vocabulary import StreamTime, WindowCount
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.status_page.last_hour import LastHour

INTERVAL_NS = 1_000_000_000
WINDOW = 10
"""Number of intervals: enough that single batches do not make the numbers jump."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates per second, over `seconds`; lines by name, dead time as fractions by reason.

    stream: of a streaming chain slices, windows, late and dropped slices, and seconds of the detector: `taken` of all
    slices, `kept` of records.
    """

    seconds: float
    events: float
    accepted: float
    bytes: float
    lines: Mapping[str, float]
    dead_time: Mapping[str, float]
    stream: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Taken:
    at_ns: int
    events: int
    accepted: int
    nbytes: int
    lines: list[int]
    dead_time: dict[str, float]
    stream: dict[str, float]


class RateWindow:
    """Samples the counters about once a second, and every ten seconds for `hour`.

    All calls come from the event loop; times are monotonic nanoseconds.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._taken: deque[_Taken] = deque(maxlen=WINDOW + 1)
        self.hour = LastHour(counters)

    def note(self, now_ns: int) -> None:
        """Take a sample if one is due; call this at every tick."""
        if not self._taken or now_ns - self._taken[-1].at_ns >= INTERVAL_NS:
            self._taken.append(self._take(now_ns))
            self.hour.note(now_ns)

    def rates(self, now_ns: int) -> Rates:
        """Rates since the start of the window."""
        now = self._take(now_ns)
        first = self._taken[0] if self._taken else now
        seconds = (now.at_ns - first.at_ns) * 1e-9
        per_second = 1 / seconds if seconds else 0.0
        lines = zip(self._counters.lines, now.lines, first.lines or [0] * len(now.lines), strict=True)
        return Rates(
            seconds=seconds,
            events=(now.events - first.events) * per_second,
            accepted=(now.accepted - first.accepted) * per_second,
            bytes=(now.nbytes - first.nbytes) * per_second,
            lines={name: (last - before) * per_second for name, last, before in lines},
            dead_time={
                reason: (value - first.dead_time[reason]) * per_second for reason, value in now.dead_time.items()
            },
            stream={name: (value - first.stream[name]) * per_second for name, value in now.stream.items()},
        )

    def _take(self, now_ns: int) -> _Taken:
        counters = self._counters
        return _Taken(
            now_ns,
            counters.events_processed,
            counters.events_accepted,
            counters.fragment_bytes_received,
            counters.line_accepts.copy(),
            {str(reason): seconds for reason, seconds in counters.dead_time.items()},
            {
                "slices": counters.windows[WindowCount.SLICES],
                "windows": counters.windows[WindowCount.WINDOWS],
                "late": counters.windows[WindowCount.LATE_SLICES],
                "dropped": sum(counters.slices_dropped.values()),
                "taken": counters.stream_ns[StreamTime.TAKEN] / 1e9,
                "kept": counters.stream_ns[StreamTime.KEPT] / 1e9,
            },
        )
