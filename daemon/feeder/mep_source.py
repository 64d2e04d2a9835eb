"""Where a feeder's MEPs come from: MDF files, Run-3 or 2019 MEP files, or events made on the spot."""

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hltnode.daemon.common.log import get_logger
from hltnode.processing.framework.event_files import read_all_events
from hltnode.processing.framework.readout import AUTO, Readout
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.mep import MAGIC as MEP_MAGIC
from hltnode.protocol.raw_data.mep import Mep, iter_meps
from hltnode.protocol.raw_data.mfp import NO_BANK, Mfp, encode_mfp, with_event_id
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import BankType, RawBank
from hltnode.protocol.raw_data.source_id import SubDetector, source_id

# The particles of a simulated event fill one bank of 64 KiB and seldom a second one; the sources have to be announced
# before all events are known.
_TRUTH_BANKS = 3

log = get_logger("mep_source")


class FeedError(ValueError):
    """An input that cannot be fed; the message names the file."""


@dataclass(frozen=True, slots=True)
class FeedMep:
    """One MEP to be sent: its id, the id and number of its events, and the MFP of each source."""

    mep: int
    first_event: int
    n_events: int
    mfps: dict[int, bytes]


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
        read: starts one pass over the input and yields the MFPs of each MEP.
        repeat: number of passes; the numbers go on.
    """

    def __init__(self, read: Callable[[], Iterator[dict[int, bytes]]], inventory: Inventory, *, repeat: int) -> None:
        self.run = inventory.run
        self.sources = tuple(sorted(inventory.versions))
        self.events_per_mep = inventory.events_per_mep
        self._versions = inventory.versions
        self._read = read
        self._repeat = repeat

    def __iter__(self) -> Iterator[FeedMep]:
        mep = first_event = 0
        for _ in range(self._repeat):
            for mfps in self._read():
                n_events = Mfp.parse(next(iter(mfps.values()))).n_fragments
                complete = self._complete(mfps, first_event, n_events)
                yield FeedMep(mep, first_event, n_events, complete)
                mep += 1
                first_event += n_events

    def _complete(self, mfps: dict[int, bytes], first_event: int, n_events: int) -> dict[int, bytes]:
        """Number the events, and let sources without a bank say so."""
        unannounced = mfps.keys() - self._versions.keys()
        if unannounced:
            log.warning("sources_left_out", sources=sorted(unannounced), first_event=first_event)
        complete = {}
        for source in self.sources:
            mfp = mfps.get(source)
            if mfp is None:
                complete[source] = encode_mfp(
                    source_id=source,
                    event_id=first_event,
                    version=self._versions[source],
                    types=[NO_BANK] * n_events,
                    fragments=[b""] * n_events,
                )
            else:
                complete[source] = with_event_id(mfp, first_event)
        return complete


def meps_of_files(
    paths: Sequence[Path], readout: Readout, *, events_per_mep: int, repeat: int, run: int | None = None
) -> MepStream:
    """The MEPs of MDF, Run-3 MEP or 2019 MEP files. Run-3 MEPs keep their packing and their encoding.

    The files are read once to learn their sources. Raises FeedError, EventFileError for a file that cannot be read, is
    damaged, or differs in kind from the others.
    """
    are_meps = {_is_run3_mep(path) for path in paths}
    if are_meps == {True}:
        return MepStream(lambda: _mfps_of_mep_files(paths), _inventory_of_meps(paths, run), repeat=repeat)
    if are_meps != {False}:
        raise FeedError("files of Run-3 MEPs and other files cannot be mixed: " + ", ".join(map(str, paths)))
    inventory = take_inventory(read_all_events(paths), readout, events_per_mep, run)
    return _stream(lambda: read_all_events(paths), readout, inventory, repeat)


def meps_of_simulation(
    make_events: Callable[[], Iterator[list[RawBank]]],
    readout: Readout,
    *,
    events_per_mep: int,
    repeat: int,
    run: int | None = None,
) -> MepStream:
    """The MEPs of events that are made on the spot; `make_events` starts one pass over them.

    The first MEP shows the sources; truth banks may grow in number later and are announced in advance.
    """
    inventory = take_inventory(islice(make_events(), events_per_mep), readout, events_per_mep, run)
    first_truth = source_id(SubDetector.TDET, 0)
    if first_truth in inventory.versions:
        for number in range(1, _TRUTH_BANKS):
            inventory.versions.setdefault(first_truth + number, inventory.versions[first_truth])
    return _stream(make_events, readout, inventory, repeat)


def _stream(
    events: Callable[[], Iterator[list[RawBank]]], readout: Readout, inventory: Inventory, repeat: int
) -> MepStream:
    def read() -> Iterator[dict[int, bytes]]:
        remaining = events()
        while chunk := list(islice(remaining, inventory.events_per_mep)):
            yield readout.mfps_of_events(chunk, 0, inventory.encoding)

    return MepStream(read, inventory, repeat=repeat)


def take_inventory(
    events: Iterable[list[RawBank]], readout: Readout, events_per_mep: int, run: int | None
) -> Inventory:
    """Sources and bank versions of some events. Raises FeedError if there are none."""
    versions: dict[tuple[int, int], int] = {}
    for banks in events:
        for bank in banks:
            source = readout.source_of(bank)
            if source is not None:
                versions[source, bank.type] = bank.version
            if run is None and bank.type == BankType.ODIN:
                run = decode_odin(bank).run
    if not versions:
        raise FeedError("the input holds no event with banks of the readout")
    # One encoding for the whole input: a source must not change its banks between MEPs.
    encoding = readout.encoding_of({bank_type for _, bank_type in versions})
    return Inventory(
        versions={source: version for (source, kind), version in versions.items() if readout.reads(kind, encoding)},
        run=run or 0,
        encoding=encoding,
        events_per_mep=events_per_mep,
    )


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


def _mfps_of_mep_files(paths: Sequence[Path]) -> Iterator[dict[int, bytes]]:
    for path in paths:
        for mep in _meps_of_file(path):
            yield {mfp.source_id: bytes(mfp.view) for mfp in mep.mfps}


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
