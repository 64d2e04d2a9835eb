"""Errors of a trigger configuration, its lines and histograms."""

from collections.abc import Iterable
from difflib import get_close_matches
from reprlib import Repr

_MAX_NAMES = 8
_TEXT = Repr()
_TEXT.maxstring = _TEXT.maxother = 60


def shown(name: object) -> str:
    """A name for a message: unchanged if it is one short word, else quoted and shortened."""
    if isinstance(name, str) and name.isidentifier() and len(name) <= _TEXT.maxstring:
        return name
    return _TEXT.repr(name)


def nearest(name: str, known: Iterable[str]) -> str:
    """The known names that resemble an unknown one, as the end of a message."""
    names = list(known)
    if near := get_close_matches(name, names, n=3):
        return f"the nearest are {', '.join(near)}"
    more = ", ..." if len(names) > _MAX_NAMES else ""
    return f"there are {', '.join(names[:_MAX_NAMES])}{more}"


class TriggerConfigError(ValueError):
    """The trigger configuration is invalid; the message names the key."""


class HistogramError(TriggerConfigError):
    """A histogram is invalid; the message gives its name, the fault and the source position."""


class LineError(TriggerConfigError):
    """A selection line is invalid; the message gives its name, the fault and the source position."""
