"""Copies of counters, taken between two callbacks of the event loop, so that exported values are consistent."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from hltnode.daemon._native import SourceTable
from hltnode.daemon.monitoring.counters import Histogram

T = TypeVar("T")

_NUMBERS = frozenset({int, float, type(None)})


@cache
def _values_of(kind: type[Any]) -> Callable[[Any], Any]:
    return attrgetter(*(each.name for each in fields(kind)))


def snapshot(value: T) -> T:
    """An independent copy of a dataclass, a dictionary, a list, a histogram, the counters of sources or a number."""
    copied: Any = value
    if isinstance(value, dict):
        copied = {key: each if type(each) in _NUMBERS else snapshot(each) for key, each in value.items()}
    elif isinstance(value, list | SourceTable):
        copied = value.copy()
    elif isinstance(value, Histogram):
        copied = Histogram(value.bounds)
        copied.counts, copied.total = value.counts.copy(), value.total
    elif is_dataclass(value):
        kind: Any = type(value)
        values = _values_of(kind)(value)
        copied = kind(*[each if type(each) in _NUMBERS else snapshot(each) for each in values])
    result: T = copied
    return result
