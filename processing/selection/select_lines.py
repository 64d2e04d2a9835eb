"""select_lines: all lines and histograms of a configuration, and the decision on each event, by a generated kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.codegen import member_names
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import Algorithm, GeneratedKernel, Grid
from hltnode.processing.framework.histograms import histogram_counts
from hltnode.processing.selection.code import INCLUDES, KernelWriter
from hltnode.processing.selection.decisions import accepted, line_table, unknown_selections
from hltnode.processing.selection.decisions import lines as decided_lines
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.evaluate import Evaluator, decide
from hltnode.processing.selection.evaluate_histograms import count
from hltnode.processing.selection.expression import Expression, Node, columns_of, postorder
from hltnode.processing.selection.histogram import RecordedHistogram, check_histograms
from hltnode.processing.selection.line import Line

NAME = "select_lines"
MAX_OPERATIONS = 500_000
"""Different operations of all lines and histograms together."""


def select_lines(
    lines: Sequence[Line], event_words: Sequence[Expression], histograms: Sequence[RecordedHistogram] = ()
) -> Algorithm:
    """The algorithm that decides on every event by some lines, and fills histograms.

    event_words: the numbers by which scalers know an event.

    Raises TriggerConfigError for lines and histograms that are too large together.
    """
    check_histograms(histograms)
    words = tuple(word.node for word in event_words)
    filled = [node for histogram in histograms for node in (histogram.condition, histogram.value)]
    n_operations = len(postorder([*(line.condition for line in lines), *filled]))
    if n_operations > MAX_OPERATIONS:
        raise TriggerConfigError(f"lines and histograms: {n_operations} operations, at most {MAX_OPERATIONS} possible")
    algorithm = Algorithm(
        name=NAME,
        source=Path(__file__).with_suffix(".cuh"),
        grid=Grid.EVENTS,
        block_size=64,
        reads=(line_table, *columns_read(lines, words, histograms)),
        writes=(decided_lines, accepted, unknown_selections, *([histogram_counts] if histograms else ())),
    )
    members = member_names(algorithm)
    firsts = {
        column.collection: f"p.{column.collection.name}.first" for column in members if column.collection is not None
    }
    body = KernelWriter(members, firsts).write(NAME, lines, words, histograms)

    def evaluate(columns: Mapping[Column, NDArray[Any]], n_events: int) -> None:
        evaluator = Evaluator(columns, n_events)
        known_by = [evaluator.numbers(word) for word in words]
        decisions, unknown = decide(lines, known_by, evaluator)
        columns[decided_lines][: decisions.size] = decisions.ravel()
        columns[accepted][:n_events] = np.any(decisions != 0, axis=1)
        columns[unknown_selections][:n_events] = unknown
        if histograms:
            counted = count(histograms, evaluator, np.any(decisions != 0, axis=1), known_by)
            columns[histogram_counts][: len(counted)] += counted

    return replace(algorithm, generated=GeneratedKernel(INCLUDES, body, evaluate))


def columns_read(
    lines: Sequence[Line], event_words: Sequence[Node], histograms: Sequence[RecordedHistogram]
) -> tuple[Column, ...]:
    """The columns that lines and histograms read, each once: those of one collection together."""
    columns = columns_of(tuple(event_words))
    of_lines = (column for line in lines for column in line.columns)
    found = dict.fromkeys((*columns, *of_lines, *(column for one in histograms for column in one.columns)))
    return tuple(sorted(found, key=lambda column: column.name))
