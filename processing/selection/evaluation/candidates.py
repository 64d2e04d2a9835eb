"""The candidates that a line selects in many events at once, computed with NumPy, and the objects that they are made
of: for efficiencies, where a candidate is compared with what is true.

Scalers are left aside, and nothing bounds the number of candidates: reports of events hold fewer (reports/selected.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.selection.evaluation.lines import Columns, Evaluator
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.reports.reported import Reports, with_parts

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Objects of one collection: the event of each, and its number in the event. Those that a line selects ascend by
    event, then by number."""

    collection: Collection
    event: Places
    number: Places


@dataclass(frozen=True, slots=True)
class Constituents:
    """What candidates are made of in the end, such as the tracks of the vertices of a pair.

    candidate: the row of the candidate, ascending; number: of the object in its event, in `collection`.
    """

    collection: Collection
    candidate: Places
    number: Places


def columns_of_candidates(lines: Iterable[Line], reports: Reports) -> tuple[Column, ...]:
    """What the functions of this module read: an engine must retain it."""
    lines = tuple(lines)
    columns = {column for line in lines for column in line.columns}
    for one in with_parts([line.variable.collection for line in lines if line.variable is not None], reports):
        columns |= set() if one.parts is None else {one.parts.numbers}
    collections = {column.collection for column in columns if column.collection is not None and not column.of_event}
    placements = [collection.placement for collection in collections if collection.placement is not None]
    columns |= {placement.offsets for placement in placements if placement.offsets is not None}
    return tuple(sorted(columns, key=lambda column: column.name))


def candidates_of(line: Line, evaluator: Evaluator) -> Candidates:
    """What a line selects, before scalers. Lines that share an evaluator compute once what they have in common. Raises
    ValueError for a line over whole events."""
    if line.variable is None:
        raise ValueError(f"line {line.name} selects events, not candidates")
    event, number = evaluator.selected(line)
    return Candidates(line.variable.collection, event, number)


def constituents(candidates: Candidates, reports: Reports, columns: Columns, n_events: int) -> Constituents:
    """What candidates are made of, as far as the reports say that they have parts; else the candidates themselves."""
    collection, number = candidates.collection, candidates.number
    row = np.arange(len(number))
    while collection in reports and (parts := reports[collection].parts) is not None:
        assert collection.placement is not None
        offsets = collection.placement.offsets
        first = collection.placement.first(None if offsets is None else columns[offsets], n_events)
        place = (first[candidates.event[row]] + number) * parts.numbers.width
        number = columns[parts.numbers][place[:, None] + np.arange(parts.numbers.width)].astype(np.int64).ravel()
        row = np.repeat(row, parts.numbers.width)
        assert parts.of.collection is not None
        collection = parts.of.collection
    return Constituents(collection, row, number)
