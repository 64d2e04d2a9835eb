"""Writes the selected candidates of accepted events (reports/selected.py) in NumPy, like kernel_code/selected.py."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import F32, Collection
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.output_lists import OutputList
from hltnode.processing.selection.evaluation.lines import Bools, Columns, Decisions, Evaluator
from hltnode.processing.selection.reports.reported import NO_HIT, Reported
from hltnode.processing.selection.reports.reported_lines import ReportedLines
from hltnode.processing.selection.reports.selected import (
    HEADER_WORDS,
    MAX_CANDIDATES_OF_LINE,
    MAX_OBJECTS,
    OBJECT_WORDS,
    max_words,
    words_of,
)

Ints = NDArray[np.int64]

_OF_COLLECTION, _OF_EVENT = 16, 24
"""First bits of collection index and event in the key of an object; the lowest bits are its number."""


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Candidates in writing order."""

    event: Ints
    line: Ints
    number: Ints


def write_candidates(
    decisions: Decisions, lines: ReportedLines, evaluator: Evaluator, columns: Columns, selected: OutputList
) -> None:
    """Write the rows of accepted events, and flag events with omitted candidates."""
    most = max_words(selected)
    rows = columns[words_of(selected)].reshape(-1, most)
    accepted = np.flatnonzero(decisions.accepted)
    rows[accepted, :HEADER_WORDS] = 0
    candidates, left_out = _candidates(decisions, lines)
    keys, owner = _objects_of_candidates(candidates, lines, evaluator, columns)
    found, first, object_of = np.unique(keys, return_index=True, return_inverse=True)
    table = _Objects(found >> _OF_EVENT, found >> _OF_COLLECTION & 0xFF, found & 0xFFFF, lines, evaluator, columns)

    # Each candidate adds the objects that no earlier candidate of its event has.
    n_candidates = len(candidates.event)
    new_objects = np.bincount(owner[first], minlength=n_candidates)
    new_words = np.bincount(owner[first], table.n_words, n_candidates).astype(np.int64)
    in_event = _sum_in_group(np.ones(n_candidates, np.int64), candidates.event)
    fits = _sum_in_group(new_objects, candidates.event) <= MAX_OBJECTS
    fits &= HEADER_WORDS + _sum_in_group(new_words, candidates.event) + in_event <= most
    left_out += np.bincount(candidates.event[~fits], minlength=len(left_out))

    written = fits[owner[first]]
    order = np.argsort(first)
    order = order[written[order]]
    table.number[order] = _sum_in_group(np.ones(len(order), np.int64), table.event[order]) - 1
    table.begin[order] = HEADER_WORDS + _sum_in_group(table.n_words[order], table.event[order]) - table.n_words[order]
    table.write(rows, written)

    event, line = candidates.event[fits], candidates.line[fits]
    own = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]][: len(owner)])
    n_words = np.zeros(len(left_out), np.int64)
    n_words[accepted] = HEADER_WORDS
    n_words += np.bincount(event, minlength=len(left_out))
    n_words += np.bincount(table.event[order], table.n_words[order], len(left_out)).astype(np.int64)
    columns[selected.count][: len(left_out)] = n_words
    rows[event, n_words[event] - in_event[fits]] = line | table.number[object_of[own[fits]]] << 16
    rows[:, 0][accepted] = (
        np.bincount(event, minlength=len(left_out)) | np.bincount(table.event[order], minlength=len(left_out)) << 16
    )[accepted]
    rows[:, 1][accepted] = left_out[accepted]
    columns[event_flags][: len(left_out)][left_out > 0] |= np.uint32(EventFlag.CANDIDATES_LEFT_OUT)


def _sum_in_group(values: NDArray[Any], group: Ints) -> Ints:
    """Running sums that restart with each group; equal groups are adjacent."""
    total = np.cumsum(values)
    begin = np.flatnonzero(np.r_[True, group[1:] != group[:-1]][: len(group)])
    before = np.repeat(total[begin] - values[begin], np.diff(np.r_[begin, len(group)]))
    return cast(Ints, total - before)


def _candidates(decisions: Decisions, lines: ReportedLines) -> tuple[_Candidates, Ints]:
    """The reported candidates, at most the limit per line; and the number of omitted ones of each event."""
    places = sorted(place for group in lines.groups.values() for place in group.places)
    event, number, line = (np.zeros(0, np.int64) for _ in range(3))
    for place in places:
        of_line = decisions.candidates[place]
        event, number = np.r_[event, of_line[0]], np.r_[number, of_line[1]]
        line = np.r_[line, np.full(len(of_line[0]), place)]
    order = np.lexsort((number, line, event))
    event, number, line = event[order], number[order], line[order]
    few = (
        _sum_in_group(np.ones(len(event), np.int64), event * len(decisions.candidates) + line) <= MAX_CANDIDATES_OF_LINE
    )
    left_out = np.bincount(event[~few], minlength=len(decisions.lines))
    return _Candidates(event[few], line[few], number[few]), left_out


def _objects_of_candidates(
    candidates: _Candidates, lines: ReportedLines, evaluator: Evaluator, columns: Columns
) -> tuple[Ints, Ints]:
    """Keys of the objects of each candidate, constituents included, in numbering order; and the row of the
    candidate."""
    keys, owners, orders = ([np.zeros(0, np.int64)] for _ in range(3))
    for group in lines.groups.values():
        rows = np.flatnonzero(np.isin(candidates.line, group.places))
        of_group = _with_parts(
            group.collection, candidates.event[rows], candidates.number[rows], lines, evaluator, columns
        )
        keys.append(of_group.ravel())
        owners.append(np.repeat(rows, of_group.shape[1]))
        orders.append(np.tile(np.arange(of_group.shape[1]), len(rows)))
    order = np.lexsort((np.concatenate(orders), np.concatenate(owners)))
    return np.concatenate(keys)[order], np.concatenate(owners)[order]


def _with_parts(
    collection: Collection, event: Ints, number: Ints, lines: ReportedLines, evaluator: Evaluator, columns: Columns
) -> Ints:
    """Keys of objects and their constituents, [object][1 + parts with their parts]."""
    index = lines.index(collection)
    keys = [(event << _OF_EVENT | index << _OF_COLLECTION | number)[:, None]]
    parts = lines.reported[index].parts
    for each in parts:
        place = evaluator.place(collection, event, number) * each.numbers.width
        for k in range(each.numbers.width):
            numbers = columns[each.numbers][place + k].astype(np.int64)
            keys.append(_with_parts(each.collection, event, numbers, lines, evaluator, columns))
    return np.concatenate(keys, axis=1)


class _Objects:
    """Reported objects: event, collection index and number in the event; number in the report, and first word."""

    def __init__(
        self, event: Ints, index: Ints, number: Ints, lines: ReportedLines, evaluator: Evaluator, columns: Columns
    ) -> None:
        self.event = event
        self.number = np.zeros(len(event), np.int64)
        self.begin = np.zeros(len(event), np.int64)
        self.n_words = np.zeros(len(event), np.int64)
        self._index, self._in_event = index, number
        self._lines, self._evaluator, self._columns = lines, evaluator, columns
        self._keys = event << _OF_EVENT | index << _OF_COLLECTION | number
        for i, one in enumerate(lines.reported):
            mine = np.flatnonzero(index == i)
            ids = self._ids(one, mine)[1]
            self.n_words[mine] = OBJECT_WORDS + len(one.values) + one.n_parts + ids.sum(axis=1)

    def _ids(self, one: Reported, mine: Ints) -> tuple[NDArray[np.uint32], Bools]:
        """(ids of channels, whether each exists) of objects, [object][place]."""
        event, number = self.event[mine], self._in_event[mine]
        ids, there = [np.zeros((len(mine), 0), np.uint32)], [np.zeros((len(mine), 0), np.bool_)]
        for hits in one.hits:
            of = number
            if hits.through is not None:
                of = self._columns[hits.through][self._evaluator.place(one.collection, event, number)]
            assert hits.numbers.collection is not None
            assert hits.ids.collection is not None
            owner = self._evaluator.place(hits.numbers.collection, event, of)
            places = np.arange(hits.numbers.width)
            numbers = self._columns[hits.numbers][owner[:, None] * hits.numbers.width + places]
            is_hit = numbers != NO_HIT if hits.count is None else places < self._columns[hits.count][owner][:, None]
            first = self._evaluator.place(hits.ids.collection, event, np.zeros_like(number))
            content = self._columns[hits.ids]
            ids.append(content[np.where(is_hit, first[:, None] + numbers, 0)])
            there.append(is_hit)
        return np.concatenate(ids, axis=1), np.concatenate(there, axis=1)

    def write(self, rows: NDArray[np.uint32], written: Bools) -> None:
        """Write the selected objects at `begin`."""
        for i, one in enumerate(self._lines.reported):
            mine = np.flatnonzero((self._index == i) & written)
            event, at = self.event[mine], self.begin[mine]
            ids, there = self._ids(one, mine)
            n_values = len(one.values)
            rows[event, at] = one.class_id | n_values << 16
            rows[event, at + 1] = there.sum(axis=1) | one.n_parts << 16
            variable = one.input.variable(0)
            assert variable is not None
            for k, value in enumerate(one.values):
                numbers = self._evaluator.of_objects(value, variable, event, self._in_event[mine])
                rows[event, at + OBJECT_WORDS + k] = numbers.astype(F32, copy=False).view(np.uint32)
            at = at + OBJECT_WORDS + n_values
            places = at[:, None] + np.cumsum(there, axis=1) - 1
            rows[np.broadcast_to(event[:, None], there.shape)[there], places[there]] = ids[there]
            for parts in one.parts:
                width = parts.numbers.width
                place = self._evaluator.place(one.collection, event, self._in_event[mine]) * width
                part = self._lines.index(parts.collection)
                for k in range(width):
                    numbers = self._columns[parts.numbers][place + k].astype(np.int64)
                    keys = event << _OF_EVENT | part << _OF_COLLECTION | numbers
                    rows[event, at + k] = self.number[np.searchsorted(self._keys, keys)]
                at = at + width
