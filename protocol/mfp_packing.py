"""Tables of events to MFPs: the raw banks of the events of a MEP, transposed to one MFP for each source that has any.

The code is compiled; Python chooses the source of each kind of bank once, and the encoding of each mixture of types
(docs/formats/mfp.md).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol._native import MfpPacker as NativePacker
from hltnode.protocol.errors import MfpError, RejectReason
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mfp import MAX_FRAGMENTS
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import subdetector_of

_NO_SOURCE, _NOT_READ = -1, -2
_SECOND_BANK, _OTHER_VERSION, _RESERVED_TYPE, _LONG_PAYLOAD = 1, 2, 3, 4
_MAX_PACKET = (1 << 32) - 1


class PackingRules(Protocol):
    """The rules of a readout that packing needs (processing.framework.readout.Readout)."""

    @property
    def error_type(self) -> int | None:
        """Bank type of the fragment of a source that has several banks in one event; None: such events are refused."""

    @property
    def error_types(self) -> frozenset[int]:
        """Types of error banks, which may have any version."""

    def encoding_of(self, bank_types: Collection[int]) -> str:
        """The encoding to read from an event with banks of these types."""

    def reads(self, bank_type: int, encoding: str) -> bool:
        """True if an encoding includes banks of this type."""

    def source_of(self, bank: RawBank) -> int | None:
        """The source id of a bank, None if no readout board writes such a bank. The payload does not matter."""


@dataclass(frozen=True, slots=True)
class MeasuredMep:
    """The MFPs of a MEP before they are written, by ascending source: source, offset and bytes, bank version of each.

    `nbytes`: of all of them with the padding.
    """

    events: EventTable
    sources: list[int]
    places: list[int]
    sizes: list[int]
    versions: list[int]
    columns: list[int]
    nbytes: int
    types_without_source: frozenset[int]


class MfpPacker:
    """Packs MEPs whose sources are those of their banks.

    Args:
        rules: the source and the encoding of banks.
        encoding: encoding to read; None: that of `rules` for each event.
        subdetectors: the sub-detectors whose banks are packed, None for all.
        alignment: MFPs begin at multiples of this number of bytes, and the last one is padded to it.
    """

    def __init__(
        self,
        rules: PackingRules,
        encoding: str | None = None,
        subdetectors: Collection[int] | None = None,
        alignment: int = 1,
    ) -> None:
        self._rules = rules
        self._alignment = alignment
        self._encoding = encoding
        self._subdetectors = subdetectors
        self._sources: list[int] = []
        self._column_of: dict[int, int] = {}
        self._skipped_of: dict[bytes | str, NDArray[np.uint8]] = {}
        self._packer = NativePacker(-1 if rules.error_type is None else rules.error_type, sorted(rules.error_types))

    def measure(self, events: EventTable, first_event: int) -> MeasuredMep:
        """The MFPs of some events, 1 to 65,535. first_event: id of the first event, for errors.

        Raises MfpError if a source has two banks in one event and the rules have no `error_type`, or two bank versions.
        """
        if not 1 <= len(events) <= MAX_FRAGMENTS:
            raise MfpError(RejectReason.BAD_SIZE, f"a MEP of {len(events)} events, 1..{MAX_FRAGMENTS} expected")
        rows = events.packed_rows
        unknown, without_source, masks = self._packer.scan(rows, events.begins, events.ends)
        if unknown:
            for key in unknown:
                self._packer.route(key, self._route(key))
            _, without_source, masks = self._packer.scan(rows, events.begins, events.ends)
        finding, columns, sizes, versions = self._packer.measure(
            rows, events.begins, events.ends, *self._skipped(masks, len(events))
        )
        if finding[0]:
            self._refuse(first_event, *finding)
        own = np.array(self._sources, np.int64)[columns]
        order = np.argsort(own)
        of_sources, of_sizes = own[order], np.array(sizes, np.int64)[order]
        if (too_large := np.flatnonzero(of_sizes > _MAX_PACKET)).size:
            source, size = of_sources[too_large[0]], of_sizes[too_large[0]]
            raise MfpError(RejectReason.OVERSIZED, f"MFP of source {source}, event {first_event}: {size} bytes")
        ends = np.cumsum(-(-of_sizes // self._alignment) * self._alignment)
        return MeasuredMep(
            events,
            of_sources.tolist(),
            [0, *ends.tolist()][: len(ends)],
            of_sizes.tolist(),
            [versions[i] for i in order.tolist()],
            [columns[i] for i in order.tolist()],
            int(ends[-1]) if len(ends) else 0,
            frozenset(without_source),
        )

    def pack(self, measured: MeasuredMep, first_event: int) -> NDArray[np.uint8]:
        """The MFPs of the MEP that was measured last, at their places; event i has the id first_event + i.

        The bytes between them are 0.
        """
        if not 0 <= first_event < 1 << 64:
            raise MfpError(RejectReason.OVERSIZED, f"MFP of event {first_event}: the id does not fit")
        data = np.zeros(measured.nbytes, np.uint8)
        events = measured.events
        self._packer.pack(
            events.packed_rows,
            events.begins,
            events.ends,
            events.buffers,
            measured.columns,
            measured.sources,
            measured.versions,
            measured.places,
            measured.sizes,
            first_event,
            data,
        )
        return data

    def _route(self, key: int) -> int:
        source = self._source_of(key)
        if source is None:
            return _NO_SOURCE
        if self._subdetectors is not None and subdetector_of(source) not in self._subdetectors:
            return _NOT_READ
        column = self._column_of.setdefault(source, len(self._sources))
        if column == len(self._sources):
            self._sources.append(source)
        return column

    def _source_of(self, key: int) -> int | None:
        return self._rules.source_of(RawBank(key & 0xFF, key >> 8 & 0xFF, key >> 16, memoryview(b"")))

    def _skipped(self, masks: bytes, n: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The bank types to skip, u8[variants, 256], and the variant of each event."""
        if self._encoding is not None:
            return self._skipped_by(self._encoding)[None], np.zeros(n, np.uint8)
        of_events = np.frombuffer(masks, "V32")
        variants = {mask: i for i, mask in enumerate(dict.fromkeys(of_events.tolist()))}
        if len(variants) == 1:
            return self._skipped_of_types(next(iter(variants)))[None], np.zeros(n, np.uint8)
        # Mixtures of types with equal effect are one variant: there are as many as encodings.
        skipped = [self._skipped_of_types(mask) for mask in variants]
        different, variant = np.unique(skipped, axis=0, return_inverse=True)
        number = variant.reshape(-1)[[variants[mask] for mask in of_events.tolist()]]
        return np.ascontiguousarray(different), number.astype(np.uint8)

    def _skipped_of_types(self, mask: bytes) -> NDArray[np.uint8]:
        skipped = self._skipped_of.get(mask)
        if skipped is None:
            types = np.flatnonzero(np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little")).tolist()
            skipped = self._skipped_of[mask] = self._skipped_by(self._rules.encoding_of(types))
        return skipped

    def _skipped_by(self, encoding: str) -> NDArray[np.uint8]:
        skipped = self._skipped_of.get(encoding)
        if skipped is None:
            skipped = np.array([not self._rules.reads(type_, encoding) for type_ in range(256)], np.uint8)
            self._skipped_of[encoding] = skipped
        return skipped

    def _refuse(self, first_event: int, problem: int, event: int, key: int, detail: int) -> NoReturn:
        bank_type, version = key & 0xFF, key >> 8 & 0xFF
        where = f"source {self._source_of(key)}, event {first_event + event}"
        if problem == _SECOND_BANK:
            raise MfpError(RejectReason.DUPLICATE, f"{where}: second bank (type {bank_type} after {detail})")
        if problem == _OTHER_VERSION:
            raise MfpError(RejectReason.MISMATCH, f"{where}: bank version {version}, {detail} in earlier events")
        if problem == _RESERVED_TYPE:
            raise MfpError(RejectReason.MALFORMED, f"{where}: type {NO_BANK} marks an absent bank")
        raise MfpError(RejectReason.OVERSIZED, f"{where}: payload of {detail} bytes, at most 65,535 fit")


def mfps_of_events(
    rules: PackingRules, events: EventTable, first_event: int = 0, encoding: str | None = None
) -> dict[int, bytes]:
    """The MFPs of a MEP by source id in ascending order; event i has the id first_event + i. Raises MfpError."""
    packer = MfpPacker(rules, encoding)
    measured = packer.measure(events, first_event)
    data = packer.pack(measured, first_event).tobytes()
    return {
        source: data[begin : begin + size]
        for source, begin, size in zip(measured.sources, measured.places, measured.sizes, strict=True)
    }
