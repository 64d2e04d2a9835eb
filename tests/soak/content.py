"""Events whose bytes are a function of run and number, so that they can be identified and checked after a soak."""

import sys
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from hltnode.daemon.replay.single_node import share
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.odin import Odin, decode_odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import source_id

EVENTS_PER_MEP = 20
FEEDERS = 3
ODIN_SOURCE = source_id(SubDetector.ODIN, 0)
TEST_SOURCES = tuple(source_id(SubDetector.TDET, number) for number in range(5))
SOURCES = tuple(sorted((ODIN_SOURCE, *TEST_SOURCES)))
FEEDER_OF = {source: number for number, mine in enumerate(share(SOURCES, FEEDERS), 1) for source in mine}
"""The feeder process, from 1, that sends a source."""

# Run and number of its event at the start of each bank.
_NUMBERED = 12


def payload(run: int, source: int, event: int) -> bytes:
    """The bytes of a bank: run and number of its event, then 4 to 60 bytes that are a function of these and the
    source."""
    numbers = run.to_bytes(4, "little") + event.to_bytes(8, "little")
    return numbers + blake2b(numbers + source.to_bytes(2, "little"), digest_size=60).digest()[: 4 + event % 57]


def odin_payload(run: int, event: int) -> bytes:
    """The ODIN bank of an event."""
    odin = Odin(run=run, event_id=event, orbit=event // 3564, bunch_id=event % 3564)
    return bytes(encode_odin(odin).payload)


def write_meps(path: Path, run: int, meps: int) -> None:
    """Write this number of MEPs, with events numbered from 0."""
    with path.open("wb") as file:
        for mep in range(meps):
            file.write(encode_mep(list(mfps(run, mep))))


def mfps(run: int, mep: int) -> Iterator[bytes]:
    """The MFP of each source, in the order of SOURCES."""
    return (mfp(run, mep, source) for source in SOURCES)


def mfp(run: int, mep: int, source: int) -> bytes:
    """The MFP of one source."""
    events = range(mep * EVENTS_PER_MEP, (mep + 1) * EVENTS_PER_MEP)
    is_odin = source == ODIN_SOURCE
    return encode_mfp(
        source_id=source,
        event_id=events.start,
        version=7 if is_odin else 1,
        types=[BankType.ODIN if is_odin else LhcbBankType.TEST_DET] * EVENTS_PER_MEP,
        fragments=[odin_payload(run, event) if is_odin else payload(run, source, event) for event in events],
    )


def event_of(banks: list[RawBank]) -> tuple[int, int]:
    """Run and number of a written event, from its first bank with both. Raises ValueError if there is none."""
    for bank in banks:
        if bank.type == LhcbBankType.TEST_DET and len(bank.payload) >= _NUMBERED:
            return int.from_bytes(bank.payload[:4], "little"), int.from_bytes(bank.payload[4:_NUMBERED], "little")
        if bank.type == BankType.ODIN:
            odin = decode_odin(bank)
            return odin.run, odin.event_id
    raise ValueError(f"no bank has the number of the event: types {[bank.type for bank in banks]}")


def missing_or_damaged(banks: list[RawBank], run: int, event: int) -> tuple[frozenset[int], frozenset[int]]:
    """Sources without bank, and sources whose bank differs from the fed one or is there twice."""
    missing, damaged = set(SOURCES), set()
    for bank in banks:
        if bank.type not in (LhcbBankType.TEST_DET, BankType.ODIN):
            continue
        if bank.source_id not in missing:
            damaged.add(bank.source_id)
            continue
        missing.remove(bank.source_id)
        is_odin = bank.type == BankType.ODIN
        expected = odin_payload(run, event) if is_odin else payload(run, bank.source_id, event)
        if bytes(bank.payload) != expected:
            damaged.add(bank.source_id)
    return frozenset(missing), frozenset(damaged)


if __name__ == "__main__":
    write_meps(Path(sys.argv[1]), run=int(sys.argv[2]), meps=int(sys.argv[3]))
