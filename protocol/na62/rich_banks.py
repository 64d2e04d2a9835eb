"""Banks of the RICH (docs/formats/rich-hits.md): hits of an event, and the rings of a simulated event."""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import BankError, RejectReason
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import source_id

RICH_SUBDETECTOR = 1
RICH_SOURCE = source_id(RICH_SUBDETECTOR, 0)
RICH_VERSION = 1
MAX_HITS = 64
"""Hits of an event; the RICH of NA62 has at most 64 (G. Lamanna et al., "Fast algorithm for real-time rings
reconstruction", DESY-PROC-2014-05/42, section 4)."""
HIT_BYTES = 3
HIT = np.dtype([("pmt", "<u2"), ("time", "u1")])
"""A hit: number of the photomultiplier, and time in the crossing in units of 25/256 ns."""


class RichBankType(IntEnum):
    """Types that this chain names (docs/formats/bank-types.md)."""

    HITS = 1
    TRUE_RINGS = 2
    """Written by the simulation alone."""
    SEVERAL_BANKS = 240
    """Made when a file is read: the source has several banks in the event; the payload is that of the first one."""


TRUE_RING = np.dtype(
    [
        ("x", "<f4"),
        ("y", "<f4"),
        ("radius", "<f4"),
        ("momentum", "<f4"),
        ("hits", "<u2"),
        ("decay", "u1"),
        ("kind", "u1"),
    ]
)
"""A simulated ring: centre and radius in mm in the focal plane, momentum in GeV/c, photomultipliers that one of its
photons has hit, decay of the event (0: none, 1: µν, 2: ππ⁰, 3: 3π), particle (0: muon, 1: pion)."""


def encode_hits(hits: NDArray[np.void]) -> bytes:
    """The payload of HITS[hits]: a byte with their number, then three bytes for each hit.

    Raises BankError for more than 255 hits, which the byte cannot tell.
    """
    if len(hits) > 255:
        raise BankError(RejectReason.BAD_SIZE, f"{len(hits)} RICH hits, at most 255 fit in a bank")
    return bytes((len(hits),)) + np.ascontiguousarray(hits, HIT).tobytes()


def decode_hits(payload: bytes | memoryview) -> NDArray[np.void]:
    """HIT[hits] of a payload. Raises BankError unless its size is that of its number of hits, at most 64."""
    size = len(payload)
    n = payload[0] if size else 0
    if size == 0 or n > MAX_HITS or size != 1 + HIT_BYTES * n:
        raise BankError(
            RejectReason.BAD_SIZE, f"a RICH bank of {size} bytes that tells of {n} hits; expected 1 + 3 for each, of 64"
        )
    return np.frombuffer(payload, HIT, offset=1)


def hits_bank(hits: NDArray[np.void]) -> RawBank:
    """The bank of HITS[hits]. Raises BankError as encode_hits."""
    return RawBank(RichBankType.HITS, RICH_VERSION, RICH_SOURCE, memoryview(encode_hits(hits)))


def truth_bank(rings: NDArray[np.void]) -> RawBank:
    """The bank of TRUE_RING[rings]."""
    return RawBank(RichBankType.TRUE_RINGS, RICH_VERSION, RICH_SOURCE, memoryview(rings.tobytes()))


def rings_of(banks: Sequence[RawBank]) -> NDArray[np.void] | None:
    """TRUE_RING[rings] of a simulated event; None without a bank of them. Raises BankError for a broken one."""
    for bank in banks:
        if bank.type == RichBankType.TRUE_RINGS:
            if len(bank.payload) % TRUE_RING.itemsize:
                raise BankError(
                    RejectReason.BAD_SIZE, f"{len(bank.payload)} bytes of simulated rings, which have 20 each"
                )
            return np.frombuffer(bank.payload, TRUE_RING)
    return None
