"""Where a feeder's MEPs come from: MDF files, Run-3 or 2019 MEP files, or events made on the spot."""

import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, repeat
from pathlib import Path

from hltnode.daemon.common.log import get_logger
from hltnode.processing.framework.event_blocks import event_blocks, read_event_blocks
from hltnode.processing.framework.readout import AUTO, Readout
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.packing import EventBlock, EventPacker, PackedFrames, bank_keys, frames_of_mfps
from hltnode.protocol.raw_data.mep import MAGIC as MEP_MAGIC
from hltnode.protocol.raw_data.mep import Mep, iter_meps
from hltnode.protocol.raw_data.mfp import NO_BANK, Mfp, encode_mfp
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import BankType, RawBank
from hltnode.protocol.raw_data.source_id import NUMBER_BITS, SubDetector, source_id
from hltnode.protocol.transport.frame_header import HEADER_SIZE

# The particles of a simulated event fill one bank of 64 KiB and seldom a second one; the sources have to be announced
# before all events are known.
_TRUTH_BANKS = 3
# Events that are looked at together for the inventory of an input.
_INVENTORY_EVENTS = 256

log = get_logger("mep_source")


class FeedError(ValueError):
    """An input that cannot be fed; the message names the file."""


class FeedMep:
    """One MEP to be sent: its id `mep`, the id of its `first_event`, `n_events`, and the frames of its sources."""

    __slots__ = ("_is_sealed", "_packed", "first_event", "mep", "n_events")

    def __init__(self, mep: int, first_event: int, packed: PackedFrames) -> None:
        self.mep = mep
        self.first_event = first_event
        self.n_events = packed.n_events
        self._packed = packed
        self._is_sealed = False

    @classmethod
    def of_mfps(cls, mep: int, first_event: int, mfps: Mapping[int, Buffer]) -> "FeedMep":
        """From encoded MFPs by source id, which are copied."""
        return cls(mep, first_event, frames_of_mfps(mfps))

    @property
    def mfps(self) -> dict[int, memoryview]:
        """The MFP of each source."""
        return {source: frame[HEADER_SIZE:] for source, frame in self._packed.frames().items()}

    def frames(self, run: int, send_time_ns: int) -> dict[int, memoryview]:
        """The frames by source; run and time are those of the first call."""
        if not self._is_sealed:
            self._packed.seal(run=run, mep=self.mep, send_time_ns=send_time_ns)
            self._is_sealed = True
        return self._packed.frames()


@dataclass(frozen=True, slots=True)
class Inventory:
    """What an input holds: the sources with the version of their banks, the run of its first event."""

    versions: dict[int, int]
    run: int
    encoding: str
    events_per_mep: int


class MepStream:
    """The MEPs of an input, numbered from 0, their events too; every source delivers to every MEP.

    Args:
        read: starts to read the input, and yields the frames of each MEP.
    """

    def __init__(self, read: Callable[[], Iterator[PackedFrames]], inventory: Inventory) -> None:
        self.run = inventory.run
        self.sources = tuple(sorted(inventory.versions))
        self.events_per_mep = inventory.events_per_mep
        self._read = read

    def __iter__(self) -> Iterator[FeedMep]:
        first_event = 0
        for mep, packed in enumerate(self._read()):
            yield FeedMep(mep, first_event, packed)
            first_event += packed.n_events


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How events become MEPs. A MEP with a larger fragment is divided; truth banks are left out if not asked for."""

    events_per_mep: int
    max_fragment_bytes: int
    repeat: int = 1
    run: int | None = None
    with_truth: bool = False


def meps_of_files(paths: Sequence[Path], readout: Readout, packing: Packing) -> MepStream:
    """The MEPs of MDF, Run-3 MEP or 2019 MEP files. Run-3 MEPs keep their packing, their encoding and their sources.

    Other files are packed across their borders. The files are read once to learn their sources. Raises FeedError,
    EventFileError for a file that cannot be read, is damaged, or differs in kind from the others.
    """
    are_meps = {_is_run3_mep(path) for path in paths}
    if are_meps == {True}:
        inventory = _inventory_of_meps(paths, packing.run)
        return MepStream(lambda: _frames_of_mep_files(paths, inventory, packing.repeat), inventory)
    if are_meps != {False}:
        raise FeedError("files of Run-3 MEPs and other files cannot be mixed: " + ", ".join(map(str, paths)))
    # Checksums are compared in this first pass.
    inventory = take_inventory(read_event_blocks(paths, _INVENTORY_EVENTS, verify_checksum=True), readout, packing)

    def blocks() -> Iterator[EventBlock]:
        passes = chain.from_iterable(repeat(paths, packing.repeat))
        return read_event_blocks(passes, packing.events_per_mep, verify_checksum=False)

    return _stream(blocks, readout, inventory, packing)


def meps_of_simulation(
    make_events: Callable[[], Iterator[list[RawBank]]], readout: Readout, packing: Packing
) -> MepStream:
    """The MEPs of events that are made on the spot; `make_events` starts one pass over them.

    The first MEP shows the sources; truth banks may grow in number later and are announced in advance.
    """
    first = event_blocks(islice(make_events(), packing.events_per_mep), packing.events_per_mep)
    inventory = take_inventory(first, readout, packing)
    first_truth = source_id(SubDetector.TDET, 0)
    if first_truth in inventory.versions:
        for number in range(1, _TRUTH_BANKS):
            inventory.versions.setdefault(first_truth + number, inventory.versions[first_truth])

    def blocks() -> Iterator[EventBlock]:
        passes = (make_events() for _ in range(packing.repeat))
        return event_blocks(chain.from_iterable(passes), packing.events_per_mep)

    return _stream(blocks, readout, inventory, packing)


def _stream(
    blocks: Callable[[], Iterator[EventBlock]], readout: Readout, inventory: Inventory, packing: Packing
) -> MepStream:
    def source_of(bank: RawBank) -> int | None:
        return _source_of(readout, inventory.encoding, bank, with_truth=packing.with_truth)

    return MepStream(lambda: _pack(blocks(), EventPacker(inventory.versions, source_of), packing), inventory)


def _pack(blocks: Iterator[EventBlock], packer: EventPacker, packing: Packing) -> Iterator[PackedFrames]:
    first_event, n_most, n_left_out = 0, packing.events_per_mep, 0
    for block in blocks:
        at = 0
        while at < len(block):
            part = block.part(at, min(at + n_most, len(block)))
            packed = packer.pack(part, first_event)
            if len(part) > 1 and max(packed.sizes) - HEADER_SIZE > packing.max_fragment_bytes:
                n_most = len(part) // 2
                log.warning("fewer_events_per_mep", events=n_most, max_fragment_bytes=packing.max_fragment_bytes)
                continue
            if len(packer.left_out) > n_left_out:
                n_left_out = len(packer.left_out)
                log.warning("sources_left_out", sources=sorted(packer.left_out), first_event=first_event)
            yield packed
            at += len(part)
            first_event += len(part)


def _source_of(readout: Readout, encoding: str, bank: RawBank, *, with_truth: bool) -> int | None:
    if not readout.reads(bank.type, encoding):
        return None
    source = readout.source_of(bank)
    is_truth = source is not None and source >> NUMBER_BITS == SubDetector.TDET
    return None if is_truth and not with_truth else source


def take_inventory(blocks: Iterable[EventBlock], readout: Readout, packing: Packing) -> Inventory:
    """Sources and bank versions of some events. Raises FeedError if there are none."""
    keys: set[tuple[int, int, int]] = set()
    run = packing.run
    for block in blocks:
        keys |= bank_keys(block)
        if run is None:
            run = next((decode_odin(bank).run for bank in block.banks(0) if bank.type == BankType.ODIN), None)
    # One encoding for the whole input: a source must not change its banks between MEPs.
    encoding = readout.encoding_of({bank_type for bank_type, _, _ in keys})
    versions = {}
    for bank_type, version, bank_source in sorted(keys):
        bank = RawBank(bank_type, version, bank_source, memoryview(b""))
        source = _source_of(readout, encoding, bank, with_truth=packing.with_truth)
        if source is not None:
            versions[source] = version
    if not versions:
        raise FeedError("the input holds no event with banks of the readout")
    return Inventory(versions=versions, run=run or 0, encoding=encoding, events_per_mep=packing.events_per_mep)


def _frames_of_mep_files(paths: Sequence[Path], inventory: Inventory, n_passes: int) -> Iterator[PackedFrames]:
    """Events are numbered on; a source without an MFP says that it has no bank."""
    sources = sorted(inventory.versions)
    first_event = 0
    for mfps in chain.from_iterable(_mfps_of_mep_files(paths) for _ in range(n_passes)):
        n_events = Mfp.parse(next(iter(mfps.values()))).n_fragments
        complete: dict[int, Buffer] = {}
        for source in sources:
            mfp = mfps.get(source)
            if mfp is None:
                mfp = encode_mfp(
                    source_id=source,
                    event_id=first_event,
                    version=inventory.versions[source],
                    types=[NO_BANK] * n_events,
                    fragments=[b""] * n_events,
                )
            complete[source] = mfp
        yield frames_of_mfps(complete, first_event)
        first_event += n_events


def _inventory_of_meps(paths: Sequence[Path], run: int | None) -> Inventory:
    versions: dict[int, int] = {}
    most_events = 0
    for path in paths:
        for mep in _meps_of_file(path):
            most_events = max(most_events, mep.n_events)
            for mfp in mep.mfps:
                versions[mfp.source_id] = mfp.version
                if run is None and mfp.source_id == SubDetector.ODIN:
                    run = _run_of(mfp)
    if not versions:
        raise FeedError("the input holds no MEP")
    return Inventory(versions=versions, run=run or 0, encoding=AUTO, events_per_mep=most_events)


def _run_of(odin: Mfp) -> int | None:
    bank = odin.banks()[0]
    return None if bank is None else decode_odin(bank).run


def _mfps_of_mep_files(paths: Sequence[Path]) -> Iterator[dict[int, Buffer]]:
    for path in paths:
        for mep in _meps_of_file(path):
            yield {mfp.source_id: mfp.view for mfp in mep.mfps}


def _meps_of_file(path: Path) -> Iterator[Mep]:
    with _naming(path):
        yield from iter_meps(_mapped(path))


def _is_run3_mep(path: Path) -> bool:
    return int.from_bytes(_mapped(path)[:2], "little") == MEP_MAGIC


def _mapped(path: Path) -> memoryview:
    try:
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise FeedError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise FeedError(f"{path}: is empty") from error


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors of a format get the name of the file."""
    try:
        yield
    except ProtocolError as error:
        raise FeedError(f"{path}: {error}") from error
