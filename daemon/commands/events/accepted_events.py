"""The accepted events of a sample as one MDF file, with the same reports and lists as those of a node."""

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from hltnode.daemon.output.event_encoder import Decided, EventEncoder
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.workspace import BatchOutput
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.bank_types import TYPES_OF_TRIGGER
from hltnode.protocol.raw_data.reports import HLT1_SOURCE_ID


class AcceptedEvents:
    """Writes accepted events to a file. `lists`: names of the output lists that they carry, list i as banks of type
    LIST_TYPES[i]."""

    def __init__(self, file: BinaryIO, engine: Engine, lists: Sequence[str] = ()) -> None:
        self.events = 0
        self.candidates_left_out = 0
        """Selected candidates that did not fit in the reports of their events."""
        self.banks_left_out = 0
        """Banks that an event file cannot hold."""
        self.reports_left_out = 0
        """Trigger banks of the input from other sources than this selection, whose reports replace all of them."""
        written = [engine.lists[name] for name in lists]
        self._encoder = EventEncoder(
            engine.tck,
            engine.line_routing,
            engine.collections,
            engine.flags,
            written,
            summary=engine.summary,
            checksums=True,
        )
        self._file = file

    def add(self, events: EventTable, output: BatchOutput) -> None:
        """Append the accepted events of a batch, given all its events and its results."""
        accepted = np.flatnonzero(output.accepted)
        counts = np.stack(list(output.counts.values()), axis=1) if output.counts else np.zeros((len(events), 0))
        counts = np.ascontiguousarray(counts, dtype=np.uint32)
        decided = Decided(output.lines, output.flags, counts, output.selected, output.lists, summary=output.summary)
        kept = events.select(accepted)
        encoded = self._encoder.encode_banks(list(kept), accepted, decided)
        self._file.write(encoded.data)
        reports = kept.of_types(TYPES_OF_TRIGGER).rows
        self.reports_left_out += int(np.count_nonzero(reports["source"] != HLT1_SOURCE_ID))
        self.events += len(accepted)
        self.candidates_left_out += encoded.candidates_left_out
        self.banks_left_out += encoded.banks_left_out
