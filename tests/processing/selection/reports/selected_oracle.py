"""Objects that lines select in an event, by slow code: candidate by candidate, object by object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.selection.reports.selected import SELECTED_WORDS

MAX_CANDIDATES_OF_LINE, MAX_OBJECTS = 32, 128
Key = tuple[str, int]
"""Kind and number of an object of an event."""


@dataclass(frozen=True)
class Reported:
    """An object: class, numbers, LHCbIDs, and its constituents."""

    class_id: int
    numbers: tuple[float, ...]
    ids: tuple[int, ...] = ()
    parts: tuple[Key, ...] = ()

    @property
    def n_words(self) -> int:
        return 2 + len(self.numbers) + len(self.ids) + len(self.parts)


@dataclass
class Selected:
    """Objects in order, (line, object) by line, and the number of omitted candidates."""

    objects: list[Key] = field(default_factory=list)
    candidates: list[tuple[int, int]] = field(default_factory=list)
    left_out: int = 0


def select(candidates: Sequence[tuple[int, Key]], objects: Mapping[Key, Reported]) -> Selected:
    """The candidates (line, object) of an event, ascending, up to the limit."""
    event = Selected()
    full = False
    for line, key in candidates:
        known = list(event.objects)
        _add(key, objects, known)
        n_words = 2 + sum(objects[k].n_words for k in known) + len(event.candidates) + 1
        too_many = sum(1 for of_line, _ in event.candidates if of_line == line) == MAX_CANDIDATES_OF_LINE
        if full or too_many:
            event.left_out += 1
        elif len(known) > MAX_OBJECTS or n_words > SELECTED_WORDS:
            full = True
            event.left_out += 1
        else:
            event.objects = known
            event.candidates.append((line, known.index(key)))
    return event


def _add(key: Key, objects: Mapping[Key, Reported], known: list[Key]) -> None:
    if key not in known:
        known.append(key)
        for part in objects[key].parts:
            _add(part, objects, known)


def read(row: NDArray[np.uint32]) -> tuple[list[Reported], list[tuple[int, int]], int]:
    """(objects with constituents by number, candidates, omitted candidates) from the words of an event."""
    words: list[int] = row.tolist()
    n_candidates, n_objects = words[0] & 0xFFFF, words[0] >> 16
    objects = []
    at = 2
    for _ in range(n_objects):
        n_numbers, n_ids, n_parts = words[at] >> 16, words[at + 1] & 0xFFFF, words[at + 1] >> 16
        begin = at + 2
        numbers = tuple(row[begin : begin + n_numbers].view(np.float32).tolist())
        ids = tuple(words[begin + n_numbers : begin + n_numbers + n_ids])
        end = begin + n_numbers + n_ids + n_parts
        parts = tuple(("", part) for part in words[end - n_parts : end])
        objects.append(Reported(words[at] & 0xFFFF, numbers, ids, parts))
        at = end
    candidates = [(words[-1 - k] & 0xFFFF, words[-1 - k] >> 16) for k in range(n_candidates)]
    return objects, candidates, words[1]


def by_number(event: Selected, objects: Mapping[Key, Reported]) -> list[Any]:
    """The objects of an event, with the numbers of their constituents."""
    return [
        Reported(o.class_id, o.numbers, o.ids, tuple(("", event.objects.index(part)) for part in o.parts))
        for o in (objects[key] for key in event.objects)
    ]
