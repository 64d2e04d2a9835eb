"""The inventory of an input: its sources, run and events, found in one pass before sending."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeAlias

from hltnode.daemon.replay.input_files import FeedError
from hltnode.processing.framework.readout import AUTO, Readout
from hltnode.protocol.errors import OdinError
from hltnode.protocol.packing import EventBlock, bank_keys, bank_types
from hltnode.protocol.raw_data.bank_types import TYPES_OF_NODE, BankType
from hltnode.protocol.raw_data.mep import Mep
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE

Origin: TypeAlias = Path | None
"""The file of a block of events; None for events generated during the replay."""
BankKey: TypeAlias = tuple[int, int, int]
"""(type, version, source id) of a bank."""

_MEND = "replay them separately, each with its own run number (--run)"


@dataclass(slots=True)
class Inventory:
    """Content of an input: its sources with their bank versions, and the run of its first event."""

    versions: dict[int, int]
    run: int
    encoding: str
    events_per_mep: int
    n_events: int = 0
    late_sources: dict[int, int] = field(default_factory=dict)
    """Sources missing in the first events of a file and in all earlier files, with the number of their first event.
    Before that event, they send fragments without a bank."""
    lacking: dict[Path, list[int]] = field(default_factory=dict)
    """Per file, sources without banks that another file has; there they send fragments without a bank."""
    unsent_types: list[int] = field(default_factory=list)
    """Types of banks of unknown sources, which are not sent. Banks that no readout sends do not count: trigger banks,
    truth, other encodings of the same hits."""
    files: set[Path] = field(default_factory=set)
    """The files that hold these events."""


def source_of_bank(readout: Readout, encoding: str, bank: RawBank, *, with_truth: bool) -> int | None:
    """The source that sends a bank; None if the bank is not sent."""
    if bank.type in TYPES_OF_NODE or not readout.reads(bank.type, encoding):
        return None
    return None if bank.type in readout.truth_types and not with_truth else readout.source_of(bank)


class EventInventory:
    """Collects the inventory of events. Raises FeedError for encodings that cannot be sent together."""

    def __init__(self, readout: Readout, *, events_per_mep: int, run: int | None, with_truth: bool) -> None:
        self._readout = readout
        self._events_per_mep = events_per_mep
        self._run = run
        self._with_truth = with_truth
        self._n_events = 0
        self._first_event_of: dict[BankKey, int] = {}
        self._late: set[BankKey] = set()
        self._keys_of: dict[Origin, set[BankKey]] = {}
        self._encodings = _Encodings(readout)

    def add(self, origin: Origin, block: EventBlock) -> None:
        """Add the next events, all of one file."""
        keys = bank_keys(block)
        begins_file = origin not in self._keys_of
        for key in keys - self._first_event_of.keys():
            self._first_event_of[key] = self._n_events + (0 if begins_file else _first_with(key, block))
            if not begins_file:
                self._late.add(key)
        self._keys_of.setdefault(origin, set()).update(keys)
        self._encodings.look(origin, self._n_events, block)
        if self._run is None:
            self._run = next(filter(None, map(run_of_bank, block.banks(0))), None)
        self._n_events += len(block)

    def result(self, run: int = 0) -> Inventory:
        """The inventory; `run` is that of events without ODIN.

        Raises FeedError without events, and for mixed bank versions, which cannot be sent together.
        """
        readout, first_event_of = self._readout, self._first_event_of
        # One encoding for the whole input: the bank type of a source must not change between MEPs.
        encoding = readout.encoding_of({bank_type for bank_type, _, _ in first_event_of})
        never_sent = TYPES_OF_NODE | readout.truth_types | readout.types_not_read_out
        source_of: dict[BankKey, int] = {}
        unsent: set[int] = set()
        for key in sorted(first_event_of):
            source = source_of_bank(readout, encoding, RawBank(*key, memoryview(b"")), with_truth=self._with_truth)
            bank_type = key[0]
            if source is not None:
                source_of[key] = source
            elif bank_type not in never_sent and readout.reads(bank_type, encoding):
                unsent.add(bank_type)
        if not source_of:
            raise FeedError("the input holds no event with banks of the readout sources")
        # Error banks have versions of their own; theirs counts only for a source that sends nothing else.
        of_data = {key: source for key, source in source_of.items() if key[0] not in readout.error_types}
        _require_same_versions(
            {origin: {of_data[key]: key[1] for key in keys if key in of_data} for origin, keys in self._keys_of.items()}
        )
        versions = {source: version for of in (source_of, of_data) for (_, version, _), source in of.items()}
        in_time = {source for key, source in source_of.items() if key not in self._late}
        late_sources: dict[int, int] = {}
        for key in self._late & source_of.keys():
            if (source := source_of[key]) not in in_time:
                late_sources[source] = min(first_event_of[key], late_sources.get(source, self._n_events))
        return Inventory(
            versions,
            self._run or run,
            encoding,
            self._events_per_mep,
            self._n_events,
            late_sources,
            _lacking(
                {
                    origin: {source_of[key] for key in keys if key in source_of}
                    for origin, keys in self._keys_of.items()
                },
                versions,
            ),
            sorted(unsent),
            {origin for origin in self._keys_of if origin is not None},
        )


class _Encodings:
    """Events may hold the same hits in several encodings. One encoding is sent; every event must have it."""

    def __init__(self, readout: Readout) -> None:
        self._readout = readout
        self._first: tuple[str, Origin, int] | None = None

    def look(self, origin: Origin, first_event: int, block: EventBlock) -> None:
        """Add events. Raises FeedError if their encoding differs from earlier events."""
        types = bank_types(block)
        encoding = self._readout.encoding_of(types)
        if all(self._readout.reads(each, encoding) for each in types):
            self._found(types, encoding, origin, first_event)
            return
        for event in range(len(block)):
            types = bank_types(block.part(event, event + 1))
            self._found(types, self._readout.encoding_of(types), origin, first_event + event)

    def _found(self, types: set[int], encoding: str, origin: Origin, event: int) -> None:
        others = [each for each in self._readout.encodings if each not in (AUTO, encoding)]
        if all(self._readout.reads(each, other) for each in types for other in others):
            # Events without banks of these detectors fit every encoding.
            return
        if self._first is None:
            self._first = encoding, origin, event
        elif self._first[0] != encoding:
            self._refuse(encoding, origin, event)

    def _refuse(self, encoding: str, origin: Origin, event: int) -> NoReturn:
        assert self._first is not None
        first_encoding, first_origin, first_event = self._first
        if origin == first_origin:
            raise FeedError(
                f"{origin}: event {first_event} is read as {first_encoding}, event {event} as {encoding}, and one "
                "encoding is sent: divide the file, and replay the parts one after the other (--run)"
            )
        raise FeedError(
            f"{first_origin} is read as {first_encoding}, {origin} as {encoding}, and one encoding is sent: {_MEND}"
        )


def _require_same_versions(versions_of: Mapping[Origin, Mapping[int, int]]) -> None:
    """Raise FeedError if a source has different bank versions in two files: one MEP cannot hold both."""
    first: dict[int, tuple[Origin, int]] = {}
    for origin, versions in versions_of.items():
        for source, version in versions.items():
            other, version_before = first.setdefault(source, (origin, version))
            if version != version_before:
                raise FeedError(
                    f"source {source} has banks of version {version_before} in {other} and {version} in {origin}: "
                    f"{_MEND}"
                )


def _lacking(sources_of: Mapping[Origin, Iterable[int]], sources: Iterable[int]) -> dict[Path, list[int]]:
    """Per file, the sources that other files have and it does not have."""
    everything = set(sources)
    missing = {origin: sorted(everything.difference(mine)) for origin, mine in sources_of.items()}
    return {origin: each for origin, each in missing.items() if each and origin is not None}


def _first_with(key: BankKey, block: EventBlock) -> int:
    """The first event of a block with a bank of this type, version and source id."""
    return next(event for event in range(len(block)) if key in bank_keys(block.part(event, event + 1)))


class MepInventory:
    """Collects the inventory of Run-3 MEP files, which keep their sources and packing."""

    def __init__(self, run: int | None) -> None:
        self._run = run
        self._versions: dict[int, int] = {}
        self._late: dict[int, int] = {}
        self._sources_of: dict[Origin, set[int]] = {}
        self._n_events = self._most_events = 0

    def add(self, origin: Origin, mep: Mep) -> None:
        """Add the next MEP."""
        begins_file = origin not in self._sources_of
        mine = self._sources_of.setdefault(origin, set())
        for mfp in mep.mfps:
            if not begins_file and mfp.source_id not in self._versions:
                self._late[mfp.source_id] = self._n_events
            self._versions[mfp.source_id] = mfp.version
            mine.add(mfp.source_id)
        if self._run is None:
            self._run = run_of_mep(mep)
        self._n_events += mep.n_events
        self._most_events = max(self._most_events, mep.n_events)

    def result(self, run: int = 0) -> Inventory:
        """The inventory; `run` is that of MEPs without ODIN. Raises FeedError without a MEP."""
        if not self._versions:
            raise FeedError("the input files hold no MEP")
        return Inventory(
            self._versions,
            self._run or run,
            AUTO,
            self._most_events,
            self._n_events,
            self._late,
            _lacking(self._sources_of, self._versions),
            files={origin for origin in self._sources_of if origin is not None},
        )


def run_of_mep(mep: Mep) -> int | None:
    """The run in the first readable ODIN bank of a MEP; None without one."""
    for mfp in mep.mfps:
        if mfp.source_id == ODIN_SOURCE:
            return next(filter(None, map(run_of_bank, mfp.banks())), None)
    return None


def run_of_bank(bank: RawBank | None) -> int | None:
    """The run of an ODIN bank; None for another bank, or one that cannot be read."""
    if bank is None or bank.type != BankType.ODIN:
        return None
    try:
        return decode_odin(bank).run
    except OdinError:
        return None
