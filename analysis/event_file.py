"""Events of a file: their banks, and the decisions and selected candidates that a node wrote into them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hltnode.analysis.paths import paths_of
from hltnode.processing.framework.event_files import event_counts, read_events
from hltnode.processing.framework.readout import Readout, bank_type_name
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.reports.lumi_schema import lumi_schema
from hltnode.processing.selection.studies.tck_documents import built_in_documents, document_beside
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain
from hltnode.protocol.raw_data.bank_types import LIST_TYPES, TIME_WINDOW, BankType
from hltnode.protocol.raw_data.list_banks import decode_lists
from hltnode.protocol.raw_data.lumi_summary import LumiSchema, decode_lumi_summary, lumi_key
from hltnode.protocol.raw_data.odin import Odin, decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import decode_dec_reports
from hltnode.protocol.raw_data.selection_reports import ClassId, HltSelReports, ReportedObject, decode_sel_reports
from hltnode.protocol.raw_data.time_windows import TimeWindow, decode_window

_CLASS_NAMES = {int(class_id): class_id.name.lower() for class_id in ClassId}


@dataclass(frozen=True, slots=True, eq=False)
class Bank:
    """One raw bank. name: of its type; source: source id of 16 bits; data: u8, without header and padding."""

    type: int
    name: str
    version: int
    source: int
    data: NDArray[np.uint8] = field(repr=False)

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True, eq=False)
class SelectedCandidate:
    """An object that a line selected, or a constituent of one.

    kind: such as "track" or "vertex". numbers: by name, float32 values in mm, MeV and rad as the chain documents them;
    names are "number_0", ... for a kind that the chain does not know. channels: u32, the ids of its hits.
    """

    kind: str
    numbers: Mapping[str, float]
    channels: NDArray[np.uint32] = field(repr=False)
    parts: tuple["SelectedCandidate", ...] = ()

    def __getattr__(self, name: str) -> float:
        try:
            return self.numbers[name]
        except KeyError:
            raise AttributeError(f"a {self.kind} with the numbers {', '.join(self.numbers)} has no {name!r}") from None


class Event:
    """One event of a file."""

    def __init__(self, file: "EventFile", index: int, banks: Sequence[RawBank]) -> None:
        self.file = file
        self.index = index
        """Index of the event among those of the file that can be read, from 0."""
        self.raw_banks = banks

    def __repr__(self) -> str:
        odin = self.odin
        if odin is None and (window := self.window) is not None:
            times = f"{window.start_ns} to {window.end_ns} ns"
            return f"<run {window.run}, slice {window.slice}, window {window.number}: {times}, {len(window.hits)} hits>"
        in_file = f"event {self.index} of {self.file.path.name}"
        name = in_file if odin is None else f"run {odin.run}, event {odin.event_id}"
        return f"<{name}: {len(self.raw_banks)} banks>"

    @cached_property
    def odin(self) -> Odin | None:
        """The content of the ODIN bank; None without one. Raises ProtocolError for a damaged one."""
        return next((decode_odin(bank) for bank in self.raw_banks if bank.type == BankType.ODIN), None)

    @cached_property
    def window(self) -> TimeWindow | None:
        """The window of time of a record of a streaming chain, with its hits; None for an event.

        Raises ProtocolError for a damaged one.
        """
        return decode_window(self.raw_banks)

    @property
    def run(self) -> int | None:
        """Run number."""
        if self.odin is None and self.window is not None:
            return self.window.run
        return None if self.odin is None else self.odin.run

    @property
    def number(self) -> int | None:
        """Event number."""
        return None if self.odin is None else self.odin.event_id

    @property
    def banks(self) -> list[Bank]:
        """All banks, in the order of the file."""
        readout = self.file.readout
        return [
            Bank(
                int(bank.type),
                bank_type_name(readout, int(bank.type)),
                bank.version,
                bank.source_id,
                np.frombuffer(bank.payload, np.uint8),
            )
            for bank in self.raw_banks
        ]

    def banks_of(self, kind: str | int, source: int | None = None) -> list[Bank]:
        """The banks of a type, by name or number, and of one source if it is given.

        Raises ValueError for a name that no bank type of the chain has.
        """
        if isinstance(kind, str) and kind not in self.file.bank_names:
            raise ValueError(f"bank type {kind!r}: expected one of {', '.join(sorted(self.file.bank_names))}")
        return [
            bank for bank in self.banks if kind in (bank.type, bank.name) and (source is None or bank.source == source)
        ]

    @cached_property
    def decisions(self) -> tuple[str, ...]:
        """Names of the lines that selected the event; "line 3" where its TCK document is not known.

        Empty for an event that no node has accepted. Raises ProtocolError for a damaged report.
        """
        return tuple(self._lines.values())

    @cached_property
    def _lines(self) -> dict[int, str]:
        """Names of the lines that selected the event, by decision id."""
        found: dict[int, str] = {}
        for bank in self.raw_banks:
            if bank.type == BankType.HLT_DEC_REPORTS:
                report = decode_dec_reports(bank)
                names = self.file.line_names(report.tck)
                for line in report.lines:
                    if line.decision:
                        known = 0 < line.decision_id <= len(names)
                        found[line.decision_id] = names[line.decision_id - 1] if known else f"line {line.decision_id}"
        return found

    @cached_property
    def _selected(self) -> HltSelReports:
        for bank in self.raw_banks:
            if bank.type == BankType.HLT_SEL_REPORTS:
                return decode_sel_reports(bank)
        return HltSelReports(())

    @cached_property
    def lists(self) -> dict[str, dict[str, NDArray[Any]]]:
        """The output lists that a node wrote with the event, by name: an array of each value.

        Empty without list banks. Raises ProtocolError for a damaged one.
        """
        return decode_lists(self.raw_banks)

    @cached_property
    def luminosity(self) -> dict[str, float]:
        """The counters of the luminosity summary of the event, by name; docs/formats/trigger-banks.md.

        Empty without a summary, and for a summary of a TCK whose document is not known. Raises ProtocolError for a
        damaged one.
        """
        for bank in self.raw_banks:
            if bank.type == BankType.HLT_LUMI_SUMMARY:
                schema = self.file.lumi_schema(self._tck, lumi_key(bank))
                return {} if schema is None else decode_lumi_summary(bank, schema)
        return {}

    @property
    def _tck(self) -> int | None:
        """TCK of the decision report."""
        for bank in self.raw_banks:
            if bank.type == BankType.HLT_DEC_REPORTS:
                return decode_dec_reports(bank).tck
        return None

    def candidates(self, line: str) -> tuple[SelectedCandidate, ...]:
        """The candidates that a line selected; empty if it did not select the event.

        Reports hold at most 32 candidates of a line. Raises ProtocolError for a damaged report.
        """
        numbers = [number for number, name in self._lines.items() if name == line]
        objects = self._selected.objects
        found = [part for number in numbers for part in self._selected.selections.get(number, ())]
        return tuple(self._candidate(objects, part, ()) for part in found)

    def _candidate(self, objects: Sequence[ReportedObject], at: int, around: tuple[int, ...]) -> SelectedCandidate:
        one = objects[at]
        if at in around:
            raise ValueError(f"{self!r}: object {at} of its selection report is a part of itself")
        parts = tuple(self._candidate(objects, part, (*around, at)) for part in one.parts)
        names = self.file.names_of_numbers(one, self._tck)
        return SelectedCandidate(
            _CLASS_NAMES.get(one.class_id, f"class {one.class_id}"),
            dict(zip(names, one.info, strict=True)),
            np.array(one.ids, np.uint32),
            parts,
        )


class EventFile(Sequence[Event]):
    """The events of one file, read when they are asked for; `for event in file` reads each once.

    `len(file)` reads the headers of all events. An index reads the file from its start, except in MDF files.
    """

    def __init__(self, path: Path, chain: TriggerChain, documents: Sequence[TckDocument]) -> None:
        self.path = path
        self._chain = chain
        self._documents = {document.tck: document for document in documents}
        self._found: dict[int, TckDocument | None] = {}

    def __repr__(self) -> str:
        return f"<events of {self.path}>"

    def __iter__(self) -> Iterator[Event]:
        for index, banks in enumerate(read_events(self.path)):
            yield Event(self, index, banks)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Start and number of events of each part of the file."""
        return np.array([(part.begin, part.n_events) for part in event_counts(self.path)], np.int64).reshape(-1, 2)

    def __len__(self) -> int:
        return int(self._starts[:, 1].sum())

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...

    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        n = len(self)
        place = index + n if index < 0 else index
        if not 0 <= place < n:
            raise IndexError(f"{self.path}: no event {index}: the file has {n} events, counted from 0")
        ends = np.cumsum(self._starts[:, 1])
        part = int(np.searchsorted(ends, place, side="right"))
        before = int(ends[part] - self._starts[part, 1])
        banks = next(islice(read_events(self.path, int(self._starts[part, 0])), place - before, None))
        return Event(self, place, banks)

    @property
    def readout(self) -> Readout:
        """The rules of the experiment for its banks."""
        return self._chain.readout

    @cached_property
    def bank_names(self) -> frozenset[str]:
        """Names of the bank types of the chain, and of those that a node writes."""
        of_node = (bank_type_name(self.readout, number) for number in (*BankType, *LIST_TYPES, TIME_WINDOW))
        return frozenset((*self.readout.bank_types.values(), *of_node))

    @cached_property
    def _built_in(self) -> dict[int, TckDocument]:
        return {document.tck: document for document in built_in_documents(self._chain)}

    def line_names(self, tck: int) -> tuple[str, ...]:
        """Names of the lines of a TCK: from the given documents, the document beside the file, or a built-in one.

        Empty for an unknown TCK. Raises TriggerConfigError for a damaged document.
        """
        document = self._document(tck)
        return () if document is None else document.line_names

    def _document(self, tck: int) -> TckDocument | None:
        if tck not in self._found:
            given = self._documents.get(tck)
            self._found[tck] = given or document_beside(self.path, tck) or self._built_in.get(tck)
        return self._found[tck]

    def lumi_schema(self, tck: int | None, key: int) -> LumiSchema | None:
        """The places of the luminosity counters, from the document of a TCK; None if no document has this key.

        Raises TriggerConfigError for a damaged document.
        """
        document = None if tck is None else self._document(tck)
        if document is None:
            return None
        schema = lumi_schema(document.collections, document.counters)
        return schema if schema.key == key else None

    def names_of_numbers(self, one: ReportedObject, tck: int | None = None) -> tuple[str, ...]:
        """Names of the numbers of a reported object; those of a composite are in the document of the TCK."""
        for known in self._chain.reported:
            if (known.class_id, len(known.names), bool(known.parts)) == _kind_of(one):
                return known.names
        document = self._document(tck) if one.class_id == ClassId.PARTICLE and tck is not None else None
        if document is not None and (names := document.numbers_of_composites(len(one.info))):
            return names
        return tuple(f"number_{i}" for i in range(len(one.info)))


def _kind_of(one: ReportedObject) -> tuple[int, int, bool]:
    """What distinguishes the objects of one class: the number of their numbers, and whether they have parts."""
    return one.class_id, len(one.info), bool(one.parts)


def open_file(file: PathLike[str] | str, *, chain: str = "lhcb", tck: Sequence[PathLike[str] | str] = ()) -> EventFile:
    """The events of an MDF or MEP file: banks by type and source, decisions, and selected candidates.

    Args:
        file: file written by a node, by `hltnode process --accepted`, by `hltnode.simulate` or by the detector.
        chain: name of the installed chain whose names of banks and lines apply.
        tck: documents of trigger configurations with the names of lines, beside those that are found next to the file
            and the built-in ones.

    Raises ValueError for an unknown chain or a damaged document, FileNotFoundError; while reading, EventFileError.
    """
    (path,) = paths_of(file)
    return EventFile(path, installed_chain(chain), [TckDocument.load(Path(each)) for each in tck])
