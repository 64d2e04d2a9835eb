"""Banks of an underwater neutrino telescope (docs/formats/km3net-hits.md): hits of a sub-slice, and simulated muons."""

from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import BankError, RejectReason
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE, RawBank
from hltnode.protocol.raw_data.source_id import source_id, subdetector_of

KM3NET_SUBDETECTOR = 1
HITS_VERSION = 1
MAX_PMTS = 1 << 16
"""PMT numbers have 16 bits; a building block of KM3NeT has 64,170 PMTs."""

HIT = np.dtype([("charge", "<u2"), ("pmt", "<u2"), ("time", "<u4")])
"""A hit: charge in hundredths of a photoelectron, number of the PMT in the detector, time in ns since the start of the
sub-slice. As one little-endian word of 64 bits, hits are in the order of time, then PMT, then charge."""
TIME_OFFSET = 4
"""Byte of the time in a hit."""
MAX_HITS_OF_BANK = MAX_PAYLOAD_SIZE // HIT.itemsize

TRUE_MUON = np.dtype(
    [
        ("first", "<i4"),
        ("last", "<i4"),
        ("hits", "<u4"),
        ("pmts", "<u4"),
        ("position", "<f4", 3),
        ("direction", "<f4", 3),
    ]
)
"""A simulated muon in the bank of the sub-slice in which its first hit lies: times of its first and last hit in ns
since the start of this sub-slice, its hits and the PMTs that they are in, a point of its track in m and its
direction."""


class HitBankType(IntEnum):
    """Types that this chain names (docs/formats/bank-types.md)."""

    HITS = 1
    TRUE_MUONS = 2
    """Written by the simulation alone."""
    SEVERAL_BANKS = 240
    """Made when a file is read: the source has several banks in the sub-slice; the payload is that of the first one."""


def encode_hits(hits: NDArray[np.void]) -> bytes:
    """The payload of HIT[hits]. Raises BankError for more than 8,190 hits."""
    if len(hits) > MAX_HITS_OF_BANK:
        raise BankError(RejectReason.OVERSIZED, f"{len(hits)} hits, at most {MAX_HITS_OF_BANK} fit in a bank")
    return np.ascontiguousarray(hits, HIT).tobytes()


def decode_hits(payload: bytes | memoryview) -> NDArray[np.void]:
    """HIT[hits] of a payload. Raises BankError for a part of a hit."""
    if len(payload) % HIT.itemsize:
        raise BankError(RejectReason.BAD_SIZE, f"a bank of {len(payload)} bytes; hits of {HIT.itemsize} bytes expected")
    return np.frombuffer(payload, HIT)


def ordered_by_pmt(hits: NDArray[np.void]) -> NDArray[np.void]:
    """HIT[hits] in the order of a bank: by PMT, and the hits of a PMT by time, then by charge."""
    return hits[np.lexsort((hits["charge"], hits["time"], hits["pmt"]))]


def hits_bank(number: int, hits: NDArray[np.void]) -> RawBank:
    """The bank of HIT[hits] of source `number`. Raises BankError as encode_hits."""
    payload = memoryview(encode_hits(hits))
    return RawBank(HitBankType.HITS, HITS_VERSION, source_id(KM3NET_SUBDETECTOR, number), payload)


def truth_bank(muons: NDArray[np.void]) -> RawBank:
    """The bank of TRUE_MUON[muons]."""
    payload = memoryview(np.ascontiguousarray(muons, TRUE_MUON).tobytes())
    return RawBank(HitBankType.TRUE_MUONS, HITS_VERSION, source_id(KM3NET_SUBDETECTOR, 0), payload)


def hits_of(banks: Iterable[RawBank]) -> NDArray[np.void]:
    """HIT[hits] of all sources of a sub-slice. Raises BankError for a broken bank."""
    found = [
        decode_hits(bank.payload)
        for bank in banks
        if bank.type == HitBankType.HITS and subdetector_of(bank.source_id) == KM3NET_SUBDETECTOR
    ]
    return np.concatenate([np.empty(0, HIT), *found])


def muons_of(banks: Sequence[RawBank]) -> NDArray[np.void] | None:
    """TRUE_MUON[muons] of a simulated sub-slice; None without a bank of them. Raises BankError for a broken one."""
    for bank in banks:
        if bank.type == HitBankType.TRUE_MUONS:
            if len(bank.payload) % TRUE_MUON.itemsize:
                raise BankError(
                    RejectReason.BAD_SIZE,
                    f"{len(bank.payload)} bytes of simulated muons, which have {TRUE_MUON.itemsize} each",
                )
            return np.frombuffer(bank.payload, TRUE_MUON)
    return None
