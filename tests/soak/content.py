"""Events whose every byte follows from their number, so that they can be recognised and checked after a soak."""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.odin import Odin, decode_odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import BankType, RawBank
from hltnode.protocol.raw_data.source_id import SubDetector, source_id

RUN = 42
EVENTS_PER_MEP = 20
ODIN_SOURCE = source_id(SubDetector.ODIN, 0)
TEST_SOURCES = tuple(source_id(SubDetector.TDET, number) for number in range(5))
SOURCES = tuple(sorted((ODIN_SOURCE, *TEST_SOURCES)))


def payload(source: int, event: int) -> bytes:
    """The bytes of a bank: the number of its event, then 4 to 60 bytes that follow from source and event."""
    digest = blake2b(event.to_bytes(8, "little") + source.to_bytes(2, "little"), digest_size=60).digest()
    return event.to_bytes(8, "little") + digest[: 4 + event % 57]


def odin_payload(event: int) -> bytes:
    """The ODIN bank of an event."""
    odin = Odin(run=RUN, event_id=event, orbit=event // 3564, bunch_id=event % 3564)
    return bytes(encode_odin(odin).payload)


def write_meps(path: Path, events: int) -> None:
    """Write whole MEPs with the events 0 to events-1."""
    with path.open("wb") as file:
        for first in range(0, events, EVENTS_PER_MEP):
            file.write(encode_mep(list(_mfps(first))))


def event_of(banks: list[RawBank]) -> int:
    """The number of an event that was written, by its first bank that tells. Raises ValueError if none does."""
    for bank in banks:
        if bank.type == BankType.TEST_DET:
            return int.from_bytes(bank.payload[:8], "little")
        if bank.type == BankType.ODIN:
            return decode_odin(bank).event_id
    raise ValueError(f"no bank tells the number of the event: types {[bank.type for bank in banks]}")


def missing_or_damaged(banks: list[RawBank], event: int) -> tuple[set[int], set[int]]:
    """Sources whose bank is missing, and those whose bank is not what was fed."""
    missing, damaged = set(SOURCES), set()
    for bank in banks:
        if bank.source_id not in missing or bank.type not in (BankType.TEST_DET, BankType.ODIN):
            continue
        missing.remove(bank.source_id)
        expected = odin_payload(event) if bank.type == BankType.ODIN else payload(bank.source_id, event)
        if bytes(bank.payload) != expected:
            damaged.add(bank.source_id)
    return missing, damaged


def _mfps(first: int) -> Iterator[bytes]:
    events = range(first, first + EVENTS_PER_MEP)
    for source in SOURCES:
        is_odin = source == ODIN_SOURCE
        yield encode_mfp(
            source_id=source,
            event_id=first,
            version=7 if is_odin else 1,
            types=[BankType.ODIN if is_odin else BankType.TEST_DET] * EVENTS_PER_MEP,
            fragments=[odin_payload(event) if is_odin else payload(source, event) for event in events],
        )
