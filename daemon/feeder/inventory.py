"""What an input holds: its sources, run and events, found in one pass before anything is sent."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hltnode.daemon.feeder.input_files import FeedError
from hltnode.processing.framework.readout import AUTO, Readout
from hltnode.protocol.packing import EventBlock, bank_keys
from hltnode.protocol.raw_data.mep import Mep
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import BankType, RawBank
from hltnode.protocol.raw_data.source_id import NUMBER_BITS, SubDetector


@dataclass(slots=True)
class Inventory:
    """What an input holds: the sources with the version of their banks, the run of its first event."""

    versions: dict[int, int]
    run: int
    encoding: str
    events_per_mep: int
    n_events: int = 0
    late_sources: dict[int, int] = field(default_factory=dict)
    """Sources that are not in the first events, with the number of the first event that has a bank of them: before
    that they say that they have none."""


def source_of_bank(readout: Readout, encoding: str, bank: RawBank, *, with_truth: bool) -> int | None:
    """The source that a bank is sent by, None if it is not sent."""
    if not readout.reads(bank.type, encoding):
        return None
    source = readout.source_of(bank)
    is_truth = source is not None and source >> NUMBER_BITS == SubDetector.TDET
    return None if is_truth and not with_truth else source


def inventory_of_events(
    blocks: Iterable[EventBlock], readout: Readout, *, events_per_mep: int, run: int | None, with_truth: bool
) -> Inventory:
    """The inventory of some events, of which those of the first block are the first ones. Raises FeedError if there
    are no events."""
    first_event_of: dict[tuple[int, int, int], int] = {}
    n_events = n_first = 0
    for block in blocks:
        for key in bank_keys(block) - first_event_of.keys():
            first_event_of[key] = n_events + (_first_with(key, block) if n_events else 0)
        if run is None:
            run = next((decode_odin(bank).run for bank in block.banks(0) if bank.type == BankType.ODIN), None)
        n_events += len(block)
        n_first = n_first or len(block)
    # One encoding for the whole input: a source must not change its banks between MEPs.
    encoding = readout.encoding_of({bank_type for bank_type, _, _ in first_event_of})
    versions: dict[int, int] = {}
    first_of_source: dict[int, int] = {}
    for (bank_type, version, bank_source), event in sorted(first_event_of.items()):
        bank = RawBank(bank_type, version, bank_source, memoryview(b""))
        source = source_of_bank(readout, encoding, bank, with_truth=with_truth)
        if source is not None:
            versions[source] = version
            first_of_source[source] = min(event, first_of_source.get(source, event))
    if not versions:
        raise FeedError("the input holds no event with banks of the readout")
    late = {source: event for source, event in first_of_source.items() if event >= n_first}
    return Inventory(versions, run or 0, encoding, events_per_mep, n_events, late)


def _first_with(key: tuple[int, int, int], block: EventBlock) -> int:
    """The first event of a block that has a bank of this type, version and source id."""
    return next(event for event in range(len(block)) if key in bank_keys(block.part(event, event + 1)))


def inventory_of_meps(meps: Iterable[Mep], run: int | None) -> Inventory:
    """The inventory of Run-3 MEPs, which keep their sources and their packing. Raises FeedError if there are none."""
    versions: dict[int, int] = {}
    late: dict[int, int] = {}
    n_events = most_events = 0
    for mep in meps:
        for mfp in mep.mfps:
            if n_events and mfp.source_id not in versions:
                late[mfp.source_id] = n_events
            versions[mfp.source_id] = mfp.version
            if run is None and mfp.source_id == SubDetector.ODIN:
                run = _run_of(mfp)
        n_events += mep.n_events
        most_events = max(most_events, mep.n_events)
    if not versions:
        raise FeedError("the input holds no MEP")
    return Inventory(versions, run or 0, AUTO, most_events, n_events, late)


def _run_of(odin: Mfp) -> int | None:
    bank = odin.banks()[0]
    return None if bank is None else decode_odin(bank).run
