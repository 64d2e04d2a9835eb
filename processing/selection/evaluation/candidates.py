"""Selected candidates of a line and their constituents, for many events at once, in NumPy.

Efficiencies compare them with the truth. Scalers are ignored, and the number of candidates is not limited; reports of
events hold fewer (reports/selected.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.selection.evaluation.lines import Columns, Evaluator
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.reports.reported import Parts, Reports, with_parts

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Objects of one collection: the event of each, and its number in the event.

    Selected objects ascend by event, then by number.
    """

    collection: Collection
    event: Places
    number: Places


@dataclass(frozen=True, slots=True)
class Constituents:
    """The final constituents of candidates, such as the tracks of the vertices of a pair.

    candidate: row of the candidate, ascending; number: number of the object in its event, in `collection`.
    """

    collection: Collection
    candidate: Places
    number: Places


def columns_of_candidates(lines: Iterable[Line], reports: Reports) -> tuple[Column, ...]:
    """The columns that the functions of this module read; an engine must retain them."""
    lines = tuple(lines)
    columns = {column for line in lines for column in line.columns}
    for one in with_parts([line.variable.collection for line in lines if line.variable is not None], reports):
        columns |= {parts.numbers for parts in one.parts}
    collections = {column.collection for column in columns if column.collection is not None and not column.of_event}
    placements = [collection.placement for collection in collections if collection.placement is not None]
    columns |= {placement.offsets for placement in placements if placement.offsets is not None}
    return tuple(sorted(columns, key=lambda column: column.name))


def candidates_of(line: Line, evaluator: Evaluator) -> Candidates:
    """The candidates that a line selects, before scalers. Lines with one evaluator share common values.

    Raises ValueError for a line that selects whole events.
    """
    if line.variable is None:
        raise ValueError(f"line {line.name} selects events, not candidates")
    event, number = evaluator.selected(line)
    return Candidates(line.variable.collection, event, number)


def constituents(candidates: Candidates, reports: Reports, columns: Columns, n_events: int) -> Constituents:
    """The constituents of candidates by the parts in the reports; candidates without parts are their own
    constituents.

    Raises ValueError for candidates whose final constituents are objects of several collections.
    """
    found: list[Constituents] = []
    waiting = [Constituents(candidates.collection, np.arange(len(candidates.number)), candidates.number)]
    while waiting:
        of = waiting.pop(0)
        parts = reports[of.collection].parts if of.collection in reports else ()
        waiting = [*(_parts_of(of, each, candidates.event, columns, n_events) for each in parts), *waiting]
        if not parts:
            found.append(of)
    collections = {each.collection for each in found}
    if len(collections) > 1:
        names = ", ".join(sorted(collection.name for collection in collections))
        raise ValueError(f"candidates of {candidates.collection.name} have constituents of several kinds: {names}")
    row = np.concatenate([each.candidate for each in found])
    order = np.argsort(row, kind="stable")
    return Constituents(found[0].collection, row[order], np.concatenate([each.number for each in found])[order])


def _parts_of(of: Constituents, parts: Parts, event: Places, columns: Columns, n_events: int) -> Constituents:
    assert of.collection.placement is not None
    offsets = of.collection.placement.offsets
    first = of.collection.placement.first(None if offsets is None else columns[offsets], n_events)
    width = parts.numbers.width
    place = (first[event[of.candidate]] + of.number) * width
    number = columns[parts.numbers][place[:, None] + np.arange(width)].astype(np.int64).ravel()
    return Constituents(parts.collection, np.repeat(of.candidate, width), number)
