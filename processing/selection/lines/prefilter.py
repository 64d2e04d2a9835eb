"""A prefilter: a condition on the event that lines share, and that can end the reconstruction of an event early."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import U32, Column, Role
from hltnode.processing.selection.errors import LineError, shown
from hltnode.processing.selection.expressions.expression import truth
from hltnode.processing.selection.expressions.nodes import Node, recording
from hltnode.processing.selection.expressions.source_position import fail, made_of, source_position
from hltnode.processing.selection.lines.inputs import Input

MAX_NAME = 60
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Prefilter:
    """A named condition on an event. A line with prefilters decides only on events that pass all of them.

    An event that fails a prefilter of every line that needs its further reconstruction is not reconstructed further
    (prefilter_events.py). name: lower case, unique in a configuration. event: the input that stands for the event.
    selection: called once, with a stand-in for the event, as for a line.

    Raises LineError, which gives the name, the fault and the source position.
    """

    name: str
    event: Input = field(compare=False, repr=False)
    selection: Callable[[Any], Any] = field(compare=False, repr=False)
    description: str = field(default="", compare=False)
    position: str = field(init=False, compare=False, repr=False)
    """Source position of the declaration."""
    condition: Node = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", source_position())
        try:
            object.__setattr__(self, "condition", self._recorded())
        except LineError as error:
            raise LineError(f"prefilter {shown(self.name)}: {error}") from None

    def _recorded(self) -> Node:
        if not isinstance(self.name, str) or len(self.name) > MAX_NAME or not _NAME.fullmatch(self.name):
            fail(
                f"a name of at most {MAX_NAME} lower-case letters, digits and _, a letter first, is expected, not "
                f"{shown(self.name)}"
            )
        if not isinstance(self.event, Input) or self.event.collection is not None:
            fail(f"a prefilter decides on events, so the input `event` is expected, not {self.event!r}")
        with recording():
            return truth(made_of(self.selection, self.event.candidate()), "the condition of a prefilter")

    @property
    def result_name(self) -> str:
        """Its name among the counts of an event."""
        return f"prefilter_{self.name}"

    @property
    def passed(self) -> Column:
        """u32 per event: 1 if the event passes; 0 if it fails or was skipped before."""
        return passed_column(self.result_name)


@cache
def passed_column(result_name: str) -> Column:
    """The column with the result of a prefilter."""
    return events.per_event(result_name, U32, role=Role.OUTPUT)


def named(prefilters: Iterable[Prefilter]) -> dict[str, Prefilter]:
    """Prefilters by name. Raises LineError if two different ones have the same name."""
    found: dict[str, Prefilter] = {}
    for prefilter in prefilters:
        if (other := found.setdefault(prefilter.name, prefilter)) != prefilter:
            raise LineError(
                f"two prefilters have the name {prefilter.name!r}, made at {other.position} and {prefilter.position}"
            )
    return found


def chosen(names: Iterable[str], known: Mapping[str, Prefilter]) -> tuple[Prefilter, ...]:
    """The prefilters of these names. Raises LineError, which lists the known ones."""
    names = tuple(names)
    for name in names:
        if name not in known:
            raise LineError(f"prefilters: {shown(name)} is no prefilter; there are {', '.join(known) or 'none'}")
    if len(set(names)) < len(names):
        raise LineError(f"prefilters: a name is given twice: {', '.join(names)}")
    return tuple(known[name] for name in names)
