"""The output lists of a chain in kept events: the banks that a node writes (docs/formats/list-banks.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hltnode.protocol.errors import RejectReason, ReportError
from hltnode.protocol.raw_data.bank_types import LIST_TYPES
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.value_lists import read_description

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIST_VERSION = 1
_HEADER = struct.Struct("<3I")  # elements of the event, first element of the bank, elements of the bank


def decode_lists(banks: Iterable[RawBank]) -> dict[str, dict[str, NDArray[Any]]]:
    """The values of each list of an event, by the names of list and value; banks of other types are skipped.

    Raises ReportError for a damaged bank, for elements that are missing, and for a list in banks of two types.
    """
    import numpy as np

    parts: dict[str, list[dict[str, NDArray[Any]]]] = {}
    known: dict[str, tuple[int, int, int, dict[str, str]]] = {}
    for bank in banks:
        if bank.type not in LIST_TYPES:
            continue
        if bank.version != LIST_VERSION:
            raise ReportError(RejectReason.BAD_VERSION, f"list bank: version {bank.version}, {LIST_VERSION} expected")
        raw = memoryview(bank.payload)
        if len(raw) < _HEADER.size:
            raise ReportError(RejectReason.TRUNCATED, f"list bank of {len(raw)} bytes")
        total, first, n = _HEADER.unpack_from(raw)
        try:
            description, size = read_description(raw[_HEADER.size :])
            rest = raw[_HEADER.size + size :]
            values = description.content(rest, n)
        except ValueError as error:
            raise ReportError(RejectReason.MALFORMED, f"list bank: {error}") from error
        if len(rest) != description.content_size(n):
            raise ReportError(
                RejectReason.BAD_SIZE, f"list bank {description.name}: {len(rest)} bytes for {n} elements"
            )
        kinds = dict(description.values)
        before = known.get(description.name, (int(bank.type), total, 0, kinds))
        if before != (int(bank.type), total, first, kinds) or first + n > total or (n == 0) != (total == 0):
            raise ReportError(
                RejectReason.MALFORMED, f"list bank {description.name}: elements {first} to {first + n} of {total}"
            )
        known[description.name] = (int(bank.type), total, first + n, kinds)
        parts.setdefault(description.name, []).append(values)
    for name, (_, total, end, _) in known.items():
        if end != total:
            raise ReportError(RejectReason.TRUNCATED, f"list bank {name}: {end} of {total} elements")
    return {
        name: {value: np.concatenate([part[value] for part in found]) for value in found[0]}
        for name, found in parts.items()
    }
