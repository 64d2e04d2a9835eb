"""What is wrong with a trigger configuration or with one of its lines."""

from collections.abc import Iterable
from difflib import get_close_matches
from reprlib import Repr

_MAX_NAMES = 8
_TEXT = Repr()
_TEXT.maxstring = _TEXT.maxother = 60


def shown(name: object) -> str:
    """A name as messages show it: as it is if it is short and one word, else quoted and shortened."""
    if isinstance(name, str) and name.isidentifier() and len(name) <= _TEXT.maxstring:
        return name
    return _TEXT.repr(name)


def nearest(name: str, known: Iterable[str]) -> str:
    """The names that one which is not known may stand for, as the end of a message."""
    names = list(known)
    if near := get_close_matches(name, names, n=3):
        return f"the nearest are {', '.join(near)}"
    more = ", ..." if len(names) > _MAX_NAMES else ""
    return f"there are {', '.join(names[:_MAX_NAMES])}{more}"


class TriggerConfigError(ValueError):
    """A trigger configuration that cannot be used; the message names the key."""


class HistogramError(TriggerConfigError):
    """A histogram that cannot be filled; the message names it, what is wrong, and the source position."""


class LineError(TriggerConfigError):
    """A selection line that cannot be used; the message names the line, what is wrong, and the source position."""
