"""select_lines: all lines of a configuration, and the decision on each event. Its kernel is generated."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.codegen import member_names
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import Algorithm, GeneratedKernel, Grid
from hltnode.processing.selection.code import INCLUDES, KernelWriter
from hltnode.processing.selection.decisions import accepted, line_table, unknown_selections
from hltnode.processing.selection.decisions import lines as decided_lines
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.evaluate import decide
from hltnode.processing.selection.expression import Expression, Node, postorder
from hltnode.processing.selection.line import Line, columns_of

NAME = "select_lines"
MAX_OPERATIONS = 500_000
"""Different operations of all lines together."""


def select_lines(lines: Sequence[Line], event_words: Sequence[Expression]) -> Algorithm:
    """The algorithm that decides on every event by some lines.

    event_words: the numbers by which scalers know an event.

    Raises TriggerConfigError for lines that are too large together.
    """
    words = tuple(word.node for word in event_words)
    n_operations = len(postorder(tuple(line.condition for line in lines)))
    if n_operations > MAX_OPERATIONS:
        raise TriggerConfigError(f"lines: {n_operations} operations, at most {MAX_OPERATIONS} are possible")
    algorithm = Algorithm(
        name=NAME,
        source=Path(__file__).with_suffix(".cuh"),
        grid=Grid.EVENTS,
        block_size=64,
        reads=(line_table, *columns_read(lines, words)),
        writes=(decided_lines, accepted, unknown_selections),
    )
    members = member_names(algorithm)
    firsts = {
        column.collection: f"p.{column.collection.name}.first" for column in members if column.collection is not None
    }
    body = KernelWriter(members, firsts).write(NAME, lines, words)

    def evaluate(columns: Mapping[Column, NDArray[Any]], n_events: int) -> None:
        decisions, unknown = decide(lines, words, columns, n_events)
        columns[decided_lines][: decisions.size] = decisions.ravel()
        columns[accepted][:n_events] = np.any(decisions != 0, axis=1)
        columns[unknown_selections][:n_events] = unknown

    return replace(algorithm, generated=GeneratedKernel(INCLUDES, body, evaluate))


def columns_read(lines: Sequence[Line], event_words: Sequence[Node]) -> tuple[Column, ...]:
    """The columns that lines read, each once: those of one collection together."""
    columns = columns_of(tuple(event_words))
    found = dict.fromkeys((*columns, *(column for line in lines for column in line.columns)))
    return tuple(sorted(found, key=lambda column: column.name))
