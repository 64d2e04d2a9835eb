"""Sources of the MEPs of a feeder: MDF files, Run-3 or 2019 MEP files, or events generated during the replay."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice, pairwise
from pathlib import Path

from hltnode.client._native import allocate_frames
from hltnode.client.mep import FeedMep
from hltnode.client.shared_memory import SharedMemory
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.replay.input_files import FeedError, InputFiles, find_inputs
from hltnode.daemon.replay.input_name import input_name
from hltnode.daemon.replay.inventory import EventInventory, Inventory, source_of_bank
from hltnode.daemon.replay.run_split import EventRuns, MepRuns, Refilled, RunOfInput, whole_run
from hltnode.processing.framework.event_blocks import (
    MAX_BLOCK_BYTES,
    TooLargeError,
    blocks_of,
    event_blocks,
    read_event_blocks,
    read_whole,
)
from hltnode.processing.framework.event_files import Damaged, DamageLog, EventFileError, read_meps
from hltnode.processing.framework.readout import Readout
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.packing import (
    Allocate,
    EventBlock,
    EventPacker,
    PackedFrames,
    frames_of_mfps,
)
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.file_format import FileFormat
from hltnode.protocol.raw_data.mep import Mep
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.odin import set_run
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE
from hltnode.protocol.transport.frame_header import HEADER_SIZE

# Number of events per block for the inventory of an input.
_INVENTORY_EVENTS = 256
# Files whose unpacked events have up to this total size are read once and kept: reading them for each pass costs more
# than packing.
_IN_MEMORY_BYTES = 256 << 20

log = get_logger("mep_source")

Sources = frozenset[int] | None
"""A subset of the sources; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """Options for packing events into MEPs. A MEP with a too large fragment is divided.

    repeat: number of passes over the input; None: endless. run: run number, also written into the ODIN banks; None:
    that of the input. memory: place of the fragments; None: private memory. Truth banks are only included on request.
    """

    events_per_mep: int
    max_fragment_bytes: int
    repeat: int | None = 1
    run: int | None = None
    with_truth: bool = False
    memory: SharedMemory | None = None

    @property
    def allocate(self) -> Allocate:
        """Allocates memory for the fragments of a MEP."""
        return allocate_frames if self.memory is None else self.memory.allocate

    def with_own_memory(self) -> "Packing":
        """The same options with another shared memory, for another run."""
        return self if self.memory is None else replace(self, memory=SharedMemory(self.memory.nbytes))

    def passes(self) -> Iterator[int]:
        """The numbers of the passes."""
        return count() if self.repeat is None else iter(range(self.repeat))


class MepStream:
    """The MEPs of an input. MEPs and events are numbered from 0; every source has a fragment in every MEP.

    Args:
        read: reads the input and yields the frames of each MEP, for a subset of the sources.
        files: the input files.
        damage: faults of events that cannot be read.
    """

    def __init__(
        self,
        read: Callable[[Sources], Iterator[PackedFrames]],
        inventory: Inventory,
        packing: Packing,
        files: InputFiles | None = None,
        damage: DamageLog | None = None,
    ) -> None:
        self.run = inventory.run
        self.sources = tuple(sorted(inventory.versions))
        self.events_per_mep = inventory.events_per_mep
        self.n_events = None if packing.repeat is None else inventory.n_events * packing.repeat
        """Number of events of all passes; None if endless."""
        self.late_sources = inventory.late_sources
        self.lacking = inventory.lacking
        self.unsent_types = inventory.unsent_types
        self.damage = damage or DamageLog()
        """Faults of the events of the input that cannot be read; the others are sent."""
        self.files = files
        self.memory = packing.memory
        self.input_name = ""
        """Identifies the input and its packing; a node refuses another one for an unfinished run. Empty: unknown."""
        self._read = read
        self._only: Sources = None
        self._most: int | None = None
        self._new_run = packing.run

    def of(self, sources: Sequence[int]) -> "MepStream":
        """The same MEPs with the frames of these sources only; other processes send the others."""
        stream = copy.copy(self)
        stream._only = frozenset(sources)
        return stream

    def first(self, n: int) -> "MepStream":
        """The first `n` MEPs of an endless stream of equal ones."""
        stream = copy.copy(self)
        stream._most, stream.n_events = n, n * self.events_per_mep
        return stream

    def __iter__(self) -> Iterator[FeedMep]:
        first_event = 0
        try:
            for number, packed in enumerate(islice(self._read(self._only), self._most)):
                mep = FeedMep(number, first_event, packed)
                if self._new_run is not None and (odin := mep.mfp(ODIN_SOURCE)) is not None:
                    set_run(odin, self._new_run)
                yield mep
                first_event += packed.n_events
        except EventFileError:
            if self.files is not None:
                # Errors in a file that changed are reported as the change.
                self.files.check_unchanged()
            raise


def meps_of_files(given: Sequence[Path], readout: Readout, packing: Packing) -> MepStream:
    """The MEPs of an input of one run. Raises FeedError for several runs, and the errors of `runs_of_files`."""
    streams = runs_of_files(given, readout, packing)
    if len(streams) > 1:
        raise FeedError(f"the input has events of {len(streams)} runs, one is expected")
    return streams[0]


def runs_of_files(given: Sequence[Path], readout: Readout, packing: Packing) -> list[MepStream]:
    """The MEPs of each run of MDF, Run-3 MEP or 2019 MEP files, also of all files in given folders.

    The runs are in the order of their first events. With a chosen run number, all events are of one run.

    Run-3 MEPs keep their packing, encoding and sources. A MEP packed from other files may span two files. All files are
    read once to find their runs and sources. Events that cannot be read are left out and named (`damage`, common to all
    runs). Raises FeedError, and EventFileError for a file that cannot be opened.
    """
    files = find_inputs(given)
    damage = DamageLog()
    if files.kind is FileFormat.MEP:
        return _runs_of_meps(files, packing, damage)
    # The first pass checks the checksums.
    first_pass: Iterator[tuple[Path, EventBlock]]
    whole_files = _in_memory(files, damage)
    if whole_files is not None:
        first_pass = (
            (path, block) for path, events in whole_files for block in blocks_of(events, range(1), _INVENTORY_EVENTS)
        )
    else:
        first_pass = (
            (path, block)
            for path in files.paths()
            for block in read_event_blocks([path], _INVENTORY_EVENTS, verify_checksum=True, damaged=damage)
        )
        # Reading them into memory may have found some of the damage already.
        damage.clear()
    runs = EventRuns(
        lambda: EventInventory(
            readout, events_per_mep=packing.events_per_mep, run=packing.run, with_truth=packing.with_truth
        ),
        one_run=packing.run is not None,
    )

    def find() -> list[tuple[RunOfInput, Inventory]]:
        for path, block in first_pass:
            runs.add(path, block)
        return runs.results()

    def stream(files: InputFiles, run: RunOfInput, inventory: Inventory) -> MepStream:
        whole = None
        if whole_files is not None:
            whole = whole_run(run, whole_files)
        own = packing.with_own_memory()
        blocks = partial(_blocks_of_run, files, run, whole, own, is_damaged=damage.n > 0)
        return _stream(blocks, readout, inventory, own, files, damage)

    return _streams(files, packing, _with_damage(find, damage), stream)


def _blocks_of_run(
    files: InputFiles, run: RunOfInput, whole: EventBlock | None, packing: Packing, *, is_damaged: bool
) -> Iterator[EventBlock]:
    """The events of one run, for all passes; `whole` has them if they are in memory."""
    if whole is not None:
        # The events are in memory, but a changed file is still reported.
        yield from blocks_of(whole, (list(files.paths()) for _ in packing.passes()), packing.events_per_mep)
        return
    # Every pass must leave out the same events.
    read = partial(read_event_blocks, n_events=packing.events_per_mep, verify_checksum=is_damaged, damaged=_known)
    if run.number is None:
        yield from read(chain.from_iterable(files.paths() for _ in packing.passes()))
        return
    refilled = Refilled(packing.events_per_mep, MAX_BLOCK_BYTES)
    for path in chain.from_iterable(files.paths() for _ in packing.passes()):
        selected = run.events(path)
        for block in read([path]):
            yield from refilled.add(selected.of(block))
    yield from refilled.rest()


def _runs_of_meps(files: InputFiles, packing: Packing, damage: DamageLog) -> list[MepStream]:
    runs = MepRuns(packing.run)

    def find() -> list[tuple[RunOfInput, Inventory]]:
        for path in files.paths():
            for mep in read_meps(path, damage):
                runs.add(path, mep)
        return runs.results()

    def stream(files: InputFiles, run: RunOfInput, inventory: Inventory) -> MepStream:
        own = packing.with_own_memory()
        return MepStream(partial(_frames_of_meps, files, run, inventory, own), inventory, own, files, damage)

    return _streams(files, packing, _with_damage(find, damage), stream)


def _streams(
    files: InputFiles,
    packing: Packing,
    found: list[tuple[RunOfInput, Inventory]],
    make: Callable[[InputFiles, RunOfInput, Inventory], MepStream],
) -> list[MepStream]:
    """A stream of each run. Raises FeedError if the ODIN banks of two runs have the same number."""
    for one, two in pairwise(sorted(found, key=lambda each: each[1].run)):
        if one[1].run == two[1].run:
            raise FeedError(
                f"events with the runs {one[0].number} and {two[0].number} in their MDF headers have run {one[1].run} "
                "in their ODIN banks: choose the number with --run"
            )
    streams = []
    for run, inventory in found:
        mine = files if run.number is None else files.only(inventory.files)
        stream = make(mine, run, inventory)
        stream.input_name = input_name(mine, packing, run.number)
        streams.append(stream)
    return streams


def meps_of_simulation(
    make_events: Callable[[], Iterator[list[RawBank]]], readout: Readout, packing: Packing, n_events: int
) -> MepStream:
    """The MEPs of generated events; `make_events` starts one pass of `n_events` events.

    The first MEP defines the sources. Sources that only large events have are announced in advance.
    """
    found = EventInventory(
        readout, events_per_mep=packing.events_per_mep, run=packing.run, with_truth=packing.with_truth
    )
    for block in event_blocks(islice(make_events(), packing.events_per_mep), packing.events_per_mep):
        found.add(None, block)
    inventory = found.result()
    inventory.n_events = n_events
    for source, known in readout.later_sources(inventory.versions).items():
        inventory.versions.setdefault(source, inventory.versions[known])

    def blocks() -> Iterator[EventBlock]:
        return event_blocks(chain.from_iterable(make_events() for _ in packing.passes()), packing.events_per_mep)

    return _stream(blocks, readout, inventory, packing, None)


def _stream(
    blocks: Callable[[], Iterator[EventBlock]],
    readout: Readout,
    inventory: Inventory,
    packing: Packing,
    files: InputFiles | None,
    damage: DamageLog | None = None,
) -> MepStream:
    def source_of(bank: RawBank) -> int | None:
        return source_of_bank(readout, inventory.encoding, bank, with_truth=packing.with_truth)

    def read(only: Sources) -> Iterator[PackedFrames]:
        return _pack(
            blocks(),
            EventPacker(inventory.versions, source_of, only, packing.allocate, readout.error_type, readout.error_types),
            packing,
        )

    return MepStream(read, inventory, packing, files, damage)


def _pack(blocks: Iterator[EventBlock], packer: EventPacker, packing: Packing) -> Iterator[PackedFrames]:
    first_event, n_most, n_left_out, n_second = 0, packing.events_per_mep, 0, 0
    for block in blocks:
        at = 0
        while at < len(block):
            part = block.part(at, min(at + n_most, len(block)))
            try:
                packed = packer.pack(part, first_event)
            except ProtocolError as error:
                last_event = first_event + len(part) - 1
                raise FeedError(f"events {first_event} to {last_event} of the input: {error}") from error
            if len(part) > 1 and packed.largest - HEADER_SIZE > packing.max_fragment_bytes:
                n_most = len(part) // 2
                log.warning("fewer_events_per_mep", events=n_most, max_fragment_bytes=packing.max_fragment_bytes)
                continue
            if len(packer.left_out) > n_left_out:
                n_left_out = len(packer.left_out)
                log.warning("sources_left_out", sources=sorted(packer.left_out), first_event=first_event)
            if (second := packer.second_banks) is not None:
                if n_second == 0:
                    log.warning(
                        "second_banks_sent_as_error_banks", source=second.source, of_event=first_event + second.event
                    )
                n_second += second.n
            yield packed
            at += len(part)
            first_event += len(part)
    if n_second > 1:
        log.warning("second_banks_sent_as_error_banks", in_total=n_second)


def _known(_error: EventFileError) -> None:
    """The first pass has reported the damage."""


def _with_damage(
    find: Callable[[], list[tuple[RunOfInput, Inventory]]], damage: DamageLog
) -> list[tuple[RunOfInput, Inventory]]:
    """The runs of an input; the error of an input without any event also names its damage."""
    try:
        return find()
    except FeedError as error:
        raise FeedError("; ".join((str(error), *damage.first[:1]))) from error


def _in_memory(files: InputFiles, damaged: Damaged) -> list[tuple[Path, EventBlock]] | None:
    """All events by file; None if the files are too large for it, packed or unpacked."""
    if files.n_bytes > _IN_MEMORY_BYTES:
        return None
    found: list[tuple[Path, EventBlock]] = []
    left = _IN_MEMORY_BYTES
    for path in files.paths():
        try:
            events = read_whole([path], verify_checksum=True, max_bytes=left, damaged=damaged)
        except TooLargeError:
            return None
        if events is not None:
            found.append((path, events))
            left -= int(events.ends[-1])
    return found


def _meps_of(files: InputFiles, run: RunOfInput) -> Iterator[Mep]:
    for path in files.paths():
        yield from filter(run.meps(path).has, read_meps(path, _known))


def _frames_of_meps(
    files: InputFiles, run: RunOfInput, inventory: Inventory, packing: Packing, only: Sources
) -> Iterator[PackedFrames]:
    """Number the events continuously; a source without an MFP gets a fragment without a bank."""
    sources = sorted(inventory.versions if only is None else only)
    first_event = 0
    for mep in chain.from_iterable(_meps_of(files, run) for _ in packing.passes()):
        mfps = {mfp.source_id: mfp.view for mfp in mep.mfps}
        complete: dict[int, Buffer] = {}
        for source in sources:
            mfp = mfps.get(source)
            complete[source] = mfp if mfp is not None else _empty(source, first_event, mep.n_events, inventory)
        yield frames_of_mfps(complete, first_event, packing.allocate)
        first_event += mep.n_events


def _empty(source: int, first_event: int, n_events: int, inventory: Inventory) -> bytes:
    return encode_mfp(
        source_id=source,
        event_id=first_event,
        version=inventory.versions[source],
        types=[NO_BANK] * n_events,
        fragments=[b""] * n_events,
    )
