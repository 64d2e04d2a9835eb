"""Encoding of kept events as MDF records: their raw banks and the banks of the trigger.

All loops over events and banks are compiled (protocol/event_records.cpp).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag, FlagTable
from hltnode.processing.framework.output_lists import WORDS, ListContent, OutputList
from hltnode.processing.framework.streaming import END, LINES, START
from hltnode.processing.selection.reports.lumi_schema import KNOWN_COUNTERS, counter_name, lumi_schema
from hltnode.processing.selection.reports.routing import LUMI_BIT, READOUT_ERROR_BIT
from hltnode.protocol._native import RecordEncoder, WindowLayout
from hltnode.protocol.raw_data.bank_types import LIST_TYPES
from hltnode.protocol.raw_data.lumi_summary import ENCODING_KEY, CounterRange
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import HLT1_SOURCE_ID

# Task id in a decision report (numbering of LHCb's format): 1 is the first level of a trigger.
HLT1_TASK_ID = 1


@dataclass(frozen=True, slots=True)
class Decided:
    """Results of n events.

    lines: decisions, u32[n, words]. flags: u32[n]. counts: sizes of collections, u32[n, c]. selected: the candidates
    of the lines (processing.selection.reports.selected); no words of an event if not known. lists: output lists by
    name. summary: counters of luminosity summaries, u32[n, s].
    """

    lines: NDArray[np.uint32]
    flags: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    selected: ListContent
    lists: Mapping[str, ListContent] = field(default_factory=dict)
    summary: NDArray[np.uint32] = field(default_factory=lambda: np.zeros((0, 0), np.uint32))


@dataclass(frozen=True, slots=True)
class ListTable:
    """An output list of a batch for the compiled encoder.

    offsets: u32[n + 1]. values: u8[elements, bytes of one] for each value. description: value_lists.ListDescription.
    """

    bank_type: int
    description: bytes
    offsets: NDArray[np.uint32]
    values: Sequence[NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class EncodedEvents:
    """Contiguous MDF records.

    ends: u64, end of each record. banks_left_out: number of banks that a file cannot hold (a TAE header, a bank above
    the size limit). candidates_left_out: number of selected candidates that did not fit into the reports of their
    events.
    """

    data: bytes
    ends: NDArray[np.uint64]
    banks_left_out: int
    candidates_left_out: int

    def records(self) -> list[memoryview]:
        """The bytes of each record."""
        view = memoryview(self.data)
        ends = self.ends.tolist()
        return [view[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@dataclass(frozen=True, slots=True)
class EncodedWindows:
    """Contiguous MDF records of windows of time. ends, slices: u64, end and time slice of each record.

    windows: number of windows before they are merged. hits: hits of the records. cut_off: records of windows that reach
    beyond the margin. hits_outside, bytes_left: hits outside of their sub-slice, and bytes of fragments that are no
    whole record, as often as a window meets them. kept_ns: length of all records.
    """

    data: bytes
    ends: NDArray[np.uint64]
    slices: NDArray[np.uint64]
    windows: int
    hits: int
    cut_off: int
    hits_outside: int
    bytes_left: int
    kept_ns: int


class EventEncoder:
    """Writes the events of one trigger configuration.

    The TCK is also the encoding key of the decision report: it identifies the table of decision names.

    routing: u32[lines, 3], the routing words that each line sets.
    collections: names of the counted collections, in the order of `Decided.counts`.
    flags: flags of the chain. An event with a flag of the kind "cut" has not passed the global event cut.
    lists: output lists that are written; list i as banks of type LIST_TYPES[i].
    summary: counters of luminosity summaries, in the order of `Decided.summary`; without them, summaries have `counts`.
    checksums: whether records carry the checksum of the format; LHCb's own files have 0.

    Raises ValueError if the decision report of all lines does not fit into one bank.
    """

    def __init__(
        self,
        tck: int,
        routing: NDArray[np.uint32],
        collections: Sequence[str],
        flags: FlagTable,
        lists: Sequence[OutputList] = (),
        summary: Sequence[CounterRange] = (),
        *,
        checksums: bool = False,
    ) -> None:
        self._lists = [
            (bank_type, each.description, each.description.to_bytes())
            for bank_type, each in zip(LIST_TYPES, lists, strict=False)
        ]
        schema = lumi_schema(collections, summary)
        self._has_summary = bool(summary)
        counted = [each.name for each in summary] or [counter_name(each) for each in collections]
        names = [ENCODING_KEY, *(name for name, _ in KNOWN_COUNTERS), *counted]
        counters = [(names.index(counter.name), counter.offset, counter.size) for counter in schema.counters]
        self._encoder = RecordEncoder(
            key=tck,
            tck=tck,
            task_id=HLT1_TASK_ID,
            source_id=HLT1_SOURCE_ID,
            not_run=EventFlag.BACKEND_ERROR | EventFlag.NOT_PROCESSED,
            unreadable=EventFlag.BANK_ERROR | EventFlag.ODIN_ERROR,
            cut=flags.cuts,
            error_bit=READOUT_ERROR_BIT,
            lumi_bit=LUMI_BIT,
            routing=routing,
            lumi_key=schema.key,
            lumi_words=schema.size // 4,
            lumi_counters=np.array(counters, dtype=np.uint32),
            checksums=checksums,
            list_left_out=EventFlag.LIST_LEFT_OUT,
        )

    def _counted(self, decided: Decided) -> NDArray[np.uint32]:
        """The numbers of luminosity summaries."""
        return np.ascontiguousarray(decided.summary) if self._has_summary else decided.counts

    def _tables(self, decided: Decided) -> list[ListTable]:
        found = []
        for bank_type, description, text in self._lists:
            content = decided.lists[description.name]
            values = [
                np.ascontiguousarray(content.values[name], f"<{kind}").view(np.uint8).reshape(-1, int(kind[1:]))
                for name, kind in description.values.items()
            ]
            found.append(ListTable(bank_type, text, np.ascontiguousarray(content.offsets), values))
        return found

    def encode_batch(
        self,
        buffer: memoryview,
        meps: Sequence[tuple[int, NDArray[np.int64]]],
        events: NDArray[np.int64],
        run: int,
        decided: Decided,
    ) -> EncodedEvents:
        """Encode events of a batch of MEPs.

        meps: for each MEP its number of events and the place of its MFPs in `buffer`, i64[n, 3] of source id, offset
        and bytes. events: numbers of the events in the batch, ascending. Trigger banks of the input are replaced.
        """
        ends = np.empty(len(events), dtype=np.uint64)
        encoded = self._encoder.of_batch(
            buffer,
            list(meps),
            events,
            run,
            decided.lines,
            decided.flags,
            self._counted(decided),
            decided.selected.offsets,
            decided.selected.values[WORDS],
            ends,
            self._tables(decided),
        )
        return EncodedEvents(encoded[0], ends, *encoded[1:])

    def encode_windows(
        self,
        layout: WindowLayout,
        buffer: memoryview,
        meps: Sequence[tuple[int, NDArray[np.int64]]],
        slices: NDArray[np.uint64],
        missing: NDArray[np.uint8],
        run: int,
        decided: Decided,
        windows: ListContent,
        kept: NDArray[np.uint8],
    ) -> EncodedWindows:
        """Encode the hits in the windows of a batch of time slices.

        meps: as in `encode_batch`. slices: number of each. missing: whether it lacks a source, u8. windows: the list of
        windows. kept: u8 for each event, whether its windows are written.
        """
        data, ends, of_slices, *sums = self._encoder.of_windows(
            layout,
            buffer,
            list(meps),
            slices,
            missing,
            run,
            decided.lines,
            decided.flags,
            np.ascontiguousarray(windows.offsets),
            np.ascontiguousarray(windows.values[START]),
            np.ascontiguousarray(windows.values[END]),
            np.ascontiguousarray(windows.values[LINES]),
            kept,
        )
        return EncodedWindows(data, np.frombuffer(ends, np.uint64), np.frombuffer(of_slices, np.uint64), *sums)

    def encode_banks(
        self, banks: Sequence[Sequence[RawBank]], events: NDArray[np.int64], decided: Decided
    ) -> EncodedEvents:
        """Encode events given as raw banks; `events` are ascending, and the run is that of their ODIN banks."""
        ends = np.empty(len(events), dtype=np.uint64)
        encoded = self._encoder.of_events(
            [list(of_event) for of_event in banks],
            events,
            decided.lines,
            decided.flags,
            self._counted(decided),
            decided.selected.offsets,
            decided.selected.values[WORDS],
            ends,
            self._tables(decided),
        )
        return EncodedEvents(encoded[0], ends, *encoded[1:])
