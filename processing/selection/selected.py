"""What the lines selected in the events of a batch, as tables that the reports are made of."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The selected candidates and the objects that they are, event by event.

    rows: u32[events + 1], where the candidates of each event begin; they ascend by line.
    line, object: u32 per candidate; objects are numbered within their event.
    objects: u32[events + 1], where the objects of each event begin.
    class_id: u32 per object (protocol.raw_data.selection_reports.ClassId).
    info, ids, parts: u32[objects + 1], where the numbers (f32, at most 255), LHCbIDs (u32) and parts (objects of the
    same event) of each object begin in `info_values`, `id_values` and `part_values`; an object has ids or parts.
    """

    rows: Indices
    line: Indices
    object: Indices
    objects: Indices
    class_id: Indices
    info: Indices
    info_values: NDArray[np.float32]
    ids: Indices
    id_values: Indices
    parts: Indices
    part_values: Indices

    def tables(self, first: int, n_events: int) -> list[Indices]:
        """All columns as u32, those with a row per event from event `first` on."""
        events = slice(first, first + n_events + 1)
        return [
            self.rows[events],
            self.line,
            self.object,
            self.objects[events],
            self.class_id,
            self.info,
            self.info_values.view(np.uint32),
            self.ids,
            self.id_values,
            self.parts,
            self.part_values,
        ]
