"""The last warnings and errors of the log, for the status page: a few lines, each of limited length."""

from collections import deque
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

MOST = 50
# Length of a line of the page; the log has the full text.
MAX_TEXT = 400
MAX_VALUE = 120
_KEPT = frozenset({"warning", "error", "critical", "exception"})
_OF_ITS_OWN = frozenset({"timestamp", "level", "event", "part", "exc_info", "exception", "stack_info"})


@dataclass(frozen=True, slots=True)
class RecentLine:
    """A line of the log: its time (ISO 8601), level, the module that wrote it, the event, and its values as text."""

    time: str
    level: str
    part: str
    event: str
    text: str


class RecentLines:
    """A structlog processor that keeps lines and changes none; may be called from any thread."""

    def __init__(self, most: int = MOST) -> None:
        self._lines: deque[RecentLine] = deque(maxlen=most)

    def __call__(self, _logger: Any, _method: str, values: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if values.get("level") in _KEPT:
            self._lines.append(_line(values))
        return values

    def newest_first(self) -> list[RecentLine]:
        """The kept lines."""
        return list(self._lines)[::-1]


def _line(values: Mapping[str, Any]) -> RecentLine:
    parts = [f"{key}={_short(str(value), MAX_VALUE)}" for key, value in values.items() if key not in _OF_ITS_OWN]
    return RecentLine(
        time=_short(str(values.get("timestamp", "")), MAX_VALUE),
        level=str(values["level"]),
        part=_short(str(values.get("part", "")), MAX_VALUE),
        event=_short(str(values.get("event", "")), MAX_VALUE),
        text=_short(" ".join(parts), MAX_TEXT),
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


RECENT_LINES = RecentLines()
"""The recent lines of this process; the process has one log."""
