"""Scans: a line with several values of one of its cuts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.evaluation.lines import Bools
from hltnode.processing.selection.lines.line import Line

MAX_POINTS = 1000


class ScanError(ValueError):
    """The text of a scan is invalid; the message shows the expected form."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A line with each value of a cut or scale, from a text such as `Hlt1TrackMVA.alpha=0:500:11` (11 values from 0 to
    500) or `Hlt1TrackMVA.alpha=-160,296`.

    place: place of the line in the configuration. lines: one line per value. unit: of the values, empty if it is not
    known.
    """

    line: str
    cut: str
    values: tuple[float, ...]
    place: int
    lines: tuple[Line, ...] = field(repr=False)
    unit: str = ""

    @classmethod
    def read(cls, text: str, trigger: TriggerConfig) -> Self:
        """The scan of a text.

        Raises ScanError, and TriggerConfigError for an unknown line or cut, or an invalid value.
        """
        name, equals, values_text = text.partition("=")
        line, point, cut = name.strip().partition(".")
        if not (equals and point and line and cut):
            raise _wrong(text)
        values = _values(text, values_text)
        lines = tuple(trigger.with_cut(line, cut, value) for value in values)
        place = trigger.line_names.index(line)
        return cls(line, cut, values, place, lines, trigger.unit_of(line, cut))

    @property
    def name(self) -> str:
        """Name of the scanned cut."""
        return f"{self.line}.{self.cut}"

    def replaced(self, fired: Bools, varied: Bools) -> "ScanDecisions":
        """Decisions of the configuration with each value; fired: bool[events, lines], varied: bool[events, values]."""
        others = np.atleast_2d(np.delete(fired, self.place, axis=1).any(axis=1, keepdims=True))
        return ScanDecisions(line=varied, total=varied | others, exclusive=varied & ~others)


@dataclass(frozen=True, slots=True)
class ScanDecisions:
    """bool[events, values]: decisions of the line, of the whole configuration, and of only this line."""

    line: Bools
    total: Bools
    exclusive: Bools


def lines_of(scans: Sequence[Scan]) -> tuple[Line, ...]:
    """The lines of all scans, in order."""
    return tuple(line for scan in scans for line in scan.lines)


def _values(text: str, values: str) -> tuple[float, ...]:
    try:
        if ":" in values:
            first, last, number = values.split(":")
            given, n = [float(first), float(last)], int(number)
        else:
            given = [float(value) for value in values.split(",")]
            n = len(given)
    except ValueError:
        raise _wrong(text) from None
    least = 2 if ":" in values else 1
    if not least <= n <= MAX_POINTS or not np.isfinite(given).all():
        raise ScanError(f"--scan {text}: {least} to {MAX_POINTS} finite values are expected")
    return tuple(np.linspace(given[0], given[-1], n).tolist() if ":" in values else given)


def _wrong(text: str) -> ScanError:
    return ScanError(
        f"--scan {text}: LINE.CUT=FIRST:LAST:N or LINE.CUT=VALUE,VALUE,... is expected, "
        "such as Hlt1TrackMVA.alpha=0:500:11"
    )
