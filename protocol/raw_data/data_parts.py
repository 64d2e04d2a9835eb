"""Data that do not fit in one bank: equal units, spread over the banks of several sources (docs/formats/data-parts.md).

The units are rows of an image, pads of a chamber, samples of a waveform. Each part holds consecutive units and says how
many units the whole has. The kernels read the same header through framework/device/data_parts.cuh.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import BankError, RejectReason
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE

# u32 number of the first unit, u32 units in this part, u32 units of the whole, u32 bytes of a unit.
_HEADER = struct.Struct("<IIII")
HEADER_SIZE = _HEADER.size
UNIT_ALIGNMENT = 4
"""Bytes of a unit are a multiple of this, so that kernels read aligned words."""


@dataclass(frozen=True, slots=True)
class DataPart:
    """One part: units `first` to `first + len(units)` of `total`.

    own: the header of the chain, which follows the one of this module. units: u8[n, bytes of a unit], a view.
    """

    first: int
    total: int
    own: memoryview
    units: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class AssembledData:
    """The units of several parts.

    units: u8[total, bytes of a unit], zero where no part has the unit. present: bool[total]. overlapping: number of
    units that several parts have; the first part is used. refused: why parts were left out, in the order of the parts.
    """

    units: NDArray[np.uint8]
    present: NDArray[np.bool_]
    overlapping: int
    refused: tuple[str, ...]

    @property
    def missing(self) -> int:
        """Number of units that no part has."""
        return int(np.count_nonzero(~self.present))


def units_of_part(unit_bytes: int, own_bytes: int) -> int:
    """The largest power of two of units that fits in a bank beside both headers.

    A power of two gives all parts but the last the same size. Raises BankError if no unit fits, or if `unit_bytes` is
    not a positive multiple of UNIT_ALIGNMENT.
    """
    if unit_bytes < 1 or unit_bytes % UNIT_ALIGNMENT:
        raise BankError(RejectReason.BAD_SIZE, f"units of {unit_bytes} bytes: a multiple of {UNIT_ALIGNMENT} expected")
    fitting = (MAX_PAYLOAD_SIZE - HEADER_SIZE - own_bytes) // unit_bytes
    if fitting < 1:
        raise BankError(
            RejectReason.OVERSIZED, f"a unit of {unit_bytes} bytes does not fit in a bank of {MAX_PAYLOAD_SIZE} bytes"
        )
    return 1 << fitting.bit_length() - 1


def split(units: NDArray[np.uint8], own: Buffer, per_part: int | None = None) -> Iterator[bytes]:
    """The payloads of the parts of u8[n, bytes of a unit], with the header `own` of the chain in each.

    per_part: units of each part but the last; None: units_of_part. Raises BankError as units_of_part, and for parts
    that do not fit in a bank.
    """
    total, unit_bytes = units.shape
    own_bytes = bytes(own)
    most = units_of_part(unit_bytes, len(own_bytes))
    per_part = most if per_part is None else per_part
    if not 1 <= per_part * unit_bytes <= MAX_PAYLOAD_SIZE - HEADER_SIZE - len(own_bytes):
        raise BankError(RejectReason.OVERSIZED, f"{per_part} units of {unit_bytes} bytes do not make a bank")
    for first in range(0, total, per_part):
        part = units[first : first + per_part]
        yield _HEADER.pack(first, len(part), total, unit_bytes) + own_bytes + part.tobytes()


def parse_part(payload: Buffer, own_bytes: int) -> DataPart:
    """The part in the payload of a bank. Raises BankError, which says what is wrong."""
    view = byte_view(payload)
    if len(view) < HEADER_SIZE + own_bytes:
        raise BankError(
            RejectReason.TRUNCATED, f"part: its headers need {HEADER_SIZE + own_bytes} bytes, got {len(view)}"
        )
    first, count, total, unit_bytes = _HEADER.unpack_from(view)
    if count == 0 or unit_bytes == 0 or unit_bytes % UNIT_ALIGNMENT:
        raise BankError(
            RejectReason.BAD_SIZE,
            f"part: {count} units of {unit_bytes} bytes; at least one unit of a multiple of {UNIT_ALIGNMENT} expected",
        )
    if first >= total or count > total - first:
        raise BankError(RejectReason.MALFORMED, f"part: units {first} to {first + count - 1} of {total} do not exist")
    held = len(view) - HEADER_SIZE - own_bytes
    if held != count * unit_bytes:
        raise BankError(RejectReason.BAD_SIZE, f"part: {count} units of {unit_bytes} bytes announced, {held} bytes")
    units = np.frombuffer(view, np.uint8, offset=HEADER_SIZE + own_bytes).reshape(count, unit_bytes)
    return DataPart(first, total, view[HEADER_SIZE : HEADER_SIZE + own_bytes], units)


def assemble(parts: Sequence[DataPart], refused: Iterable[str] = ()) -> AssembledData:
    """The whole of the parts of one event, in the order of their sources.

    The first part gives the numbers of units and of their bytes; parts that differ from it, or whose own header does,
    are refused. A missing unit is zero. Raises BankError without any part.
    """
    if not parts:
        raise BankError(RejectReason.TRUNCATED, "no part")
    model = parts[0]
    unit_bytes = model.units.shape[1]
    units = np.zeros((model.total, unit_bytes), np.uint8)
    present = np.zeros(model.total, np.bool_)
    overlapping = np.zeros(model.total, np.bool_)
    reasons = list(refused)
    for part in parts:
        if (part.total, part.units.shape[1], part.own) != (model.total, unit_bytes, model.own):
            reasons.append(f"the part from unit {part.first} differs in its header from the first part")
            continue
        place = slice(part.first, part.first + len(part.units))
        overlapping[place] |= present[place]
        fresh = ~present[place]
        units[place][fresh] = part.units[fresh]
        present[place] = True
    return AssembledData(units, present, int(np.count_nonzero(overlapping)), tuple(reasons))
