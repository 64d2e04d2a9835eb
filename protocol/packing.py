"""Events to frames: the raw banks of the events of a MEP, transposed to one MFP for each readout source.

The code is compiled. Its cost is one copy of the payloads, for any number of sources (docs/formats/mfp.md,
docs/formats/transport-frame.md).
"""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol._native import Packer, seal_frames
from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import MfpError, RejectReason
from hltnode.protocol.raw_data.mfp import Mfp, set_event_id
from hltnode.protocol.raw_data.raw_bank import RawBank, iter_banks
from hltnode.protocol.transport.frame_header import HEADER_SIZE
from hltnode.protocol.transport.shared_memory import FRAME_ALIGNMENT

# Place of a frame that is not packed.
_NOT_MADE = (1 << 64) - 1
Allocate: TypeAlias = Callable[[int], NDArray[np.uint8]]
"""Allocates this number of bytes."""
_DAMAGED_BANK, _SECOND_BANK, _OTHER_VERSION, _TOO_LARGE, _RESERVED_TYPE, _TOO_MANY_BANKS = 1, 2, 3, 4, 5, 6


@dataclass(frozen=True, slots=True)
class EventBlock:
    """The raw banks of some events: event i is data[begins[i]:ends[i]]; both are u64[events]."""

    data: memoryview
    begins: NDArray[np.uint64]
    ends: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.begins)

    def part(self, begin: int, end: int) -> "EventBlock":
        """A slice of the events."""
        return EventBlock(self.data, self.begins[begin:end], self.ends[begin:end])

    def select(self, events: NDArray[np.intp]) -> "EventBlock":
        """These events, in this order; one may occur several times."""
        return EventBlock(self.data, self.begins[events], self.ends[events])

    def banks(self, event: int) -> list[RawBank]:
        """The raw banks of one event. Raises BankError."""
        return list(iter_banks(self.data[int(self.begins[event]) : int(self.ends[event])]))


def on_the_heap(nbytes: int) -> NDArray[np.uint8]:
    """Memory of this process."""
    return np.empty(nbytes, np.uint8)


@dataclass(frozen=True, slots=True)
class PackedFrames:
    """The frames of a MEP in one buffer: each MFP follows the space for its transport header.

    Frame i of source `sources[i]` has `sizes[i]` bytes from offset `places[i]`. `largest` is the size of the largest
    frame of the MEP, including the sources whose frames are not packed.
    """

    sources: tuple[int, ...]
    n_events: int
    buffer: NDArray[np.uint8]
    places: Sequence[int]
    sizes: Sequence[int]
    largest: int

    def moved(self, buffer: NDArray[np.uint8]) -> "PackedFrames":
        """A copy of the frames in another buffer of the same size."""
        buffer[:] = self.buffer
        return replace(self, buffer=buffer)

    def seal(self, *, run: int, mep: int, send_time_ns: int) -> None:
        """Write the transport headers. Call it before the frames are sent."""
        seal_frames(self.buffer, self.places, self.sizes, run, mep, send_time_ns)

    def frames(self) -> dict[int, memoryview]:
        """The frames by source."""
        view = byte_view(self.buffer.data)
        return {
            source: view[place : place + size]
            for source, place, size in zip(self.sources, self.places, self.sizes, strict=True)
        }

    def frame(self, source: int) -> memoryview | None:
        """The frame of one source, None if it has no frame."""
        try:
            i = self.sources.index(source)
        except ValueError:
            return None
        return byte_view(self.buffer.data)[self.places[i] : self.places[i] + self.sizes[i]]


@dataclass(frozen=True, slots=True)
class SecondBanks:
    """Banks of sources that have an earlier bank in the same event: their number, event and source of the first."""

    n: int
    event: int
    source: int


class EventPacker:
    """Packs MEPs of a fixed list of sources.

    Args:
        versions: bank version by source id, for MEPs in which the source has no bank.
        source_of: returns the source id of a bank, None for a bank to skip. Called once for each type, version and
            source id.
        only: the sources whose frames are packed, None for all.
        allocate: allocates the buffer of the frames.
        error_type: bank type of the fragment of a source with several banks in one event; it has the payload of the
            first one. None: such an event is refused.
        error_types: types of error banks, which may have any version: they get the one of their MFP.
    """

    def __init__(
        self,
        versions: Mapping[int, int],
        source_of: Callable[[RawBank], int | None],
        only: Collection[int] | None = None,
        allocate: Allocate = on_the_heap,
        error_type: int | None = None,
        error_types: Collection[int] = (),
    ) -> None:
        self.sources = tuple(sorted(versions))
        self._made = [i for i, source in enumerate(self.sources) if only is None or source in only]
        self._made_sources = tuple(self.sources[i] for i in self._made)
        self.left_out: set[int] = set()
        """Source ids of banks whose source is not in the list of the MEPs."""
        self._column_of = {source: column for column, source in enumerate(self.sources)}
        self._source_of = source_of
        self._allocate = allocate
        self.second_banks: SecondBanks | None = None
        """Second banks of a source in one event among the events packed last."""
        self._packer = Packer(
            self.sources,
            [versions[source] for source in self.sources],
            -1 if error_type is None else error_type,
            sorted(error_types),
        )

    def pack(self, block: EventBlock, first_event: int) -> PackedFrames:
        """The MFPs of some events, 1 to 65,535, as one MEP; event i has the id first_event + i.

        Raises BankError for a damaged event, MfpError if a source has two banks in one event and there is no
        `error_type`, or two bank versions.
        """
        sizes, finding, unknown, second = self._packer.measure(block.data, block.begins, block.ends)
        if unknown:
            for key in unknown:
                self._packer.route(key, self._route(key))
            sizes, finding, _, second = self._packer.measure(block.data, block.begins, block.ends)
        if finding[0]:
            self._refuse(block, *finding)
        self.second_banks = SecondBanks(*second) if second else None
        made = [sizes[i] for i in self._made]
        aligned = -(-np.array(made, np.int64) // FRAME_ALIGNMENT) * FRAME_ALIGNMENT
        made_places = [0, *np.cumsum(aligned).tolist()]
        places = [_NOT_MADE] * len(sizes)
        for i, place in zip(self._made, made_places, strict=False):
            places[i] = place
        buffer = self._allocate(made_places[-1])
        self._packer.pack(block.data, block.begins, block.ends, places, sizes, buffer, first_event)
        return PackedFrames(self._made_sources, len(block), buffer, made_places[:-1], made, max(sizes, default=0))

    def _route(self, key: int) -> int:
        source = self._source_of(RawBank(key & 0xFF, key >> 8 & 0xFF, key >> 16, memoryview(b"")))
        if source is None:
            return -1
        column = self._column_of.get(source)
        if column is None:
            self.left_out.add(source)
            return -1
        return column

    def _refuse(self, block: EventBlock, problem: int, event: int, detail: int) -> NoReturn:
        if problem in (_DAMAGED_BANK, _TOO_MANY_BANKS):
            block.banks(event)
        if problem == _TOO_LARGE:
            raise MfpError(RejectReason.OVERSIZED, f"source {self.sources[detail]}: the MFP exceeds 4 GiB")
        bank_type, version, bank_source = detail & 0xFF, detail >> 8 & 0xFF, detail >> 16
        source = self._source_of(RawBank(bank_type, version, bank_source, memoryview(b"")))
        if problem == _SECOND_BANK:
            raise MfpError(RejectReason.DUPLICATE, f"source {source}, event {event}: second bank (type {bank_type})")
        if problem == _RESERVED_TYPE:
            raise MfpError(
                RejectReason.MALFORMED, f"source {source}, event {event}: type {bank_type} marks an absent bank"
            )
        raise MfpError(
            RejectReason.MISMATCH, f"source {source}, event {event}: bank version {version}, another in earlier events"
        )


def bank_keys(block: EventBlock) -> set[tuple[int, int, int]]:
    """Type, version and source id of the banks of some events. Raises BankError for a damaged event."""
    return {(key & 0xFF, key >> 8 & 0xFF, key >> 16) for key in _keys_of(block)}


def bank_types(block: EventBlock) -> set[int]:
    """The types of the banks of some events. Raises BankError for a damaged event."""
    return {key & 0xFF for key in _keys_of(block)}


def _keys_of(block: EventBlock) -> list[int]:
    _, finding, keys, _ = Packer([], [], -1, []).measure(block.data, block.begins, block.ends)
    if finding[0] in (_DAMAGED_BANK, _TOO_MANY_BANKS):
        block.banks(finding[1])
    return keys


def frames_of_mfps(
    mfps: Mapping[int, Buffer], first_event: int | None = None, allocate: Allocate = on_the_heap
) -> PackedFrames:
    """The frames that carry copies of the encoded MFPs of a MEP, by source id.

    first_event: new id of the first event, None to keep it; allocate: allocates the buffer of the frames. Raises
    MfpError if there are no MFPs.
    """
    if not mfps:
        raise MfpError(RejectReason.BAD_SIZE, "a MEP without MFPs")
    sizes = [HEADER_SIZE + len(mfp) for mfp in mfps.values()]
    places = [0, *itertools.accumulate(map(_aligned, sizes))]
    buffer = allocate(places[-1])
    for place, mfp in zip(places, mfps.values(), strict=False):
        packed = buffer[place + HEADER_SIZE : place + HEADER_SIZE + len(mfp)]
        packed[:] = np.frombuffer(mfp, np.uint8)
        if first_event is not None:
            set_event_id(packed.data, first_event)
    n_events = Mfp.parse(next(iter(mfps.values()))).n_fragments
    return PackedFrames(tuple(mfps), n_events, buffer, places[:-1], sizes, max(sizes))


def _aligned(size: int) -> int:
    return -(-size // FRAME_ALIGNMENT) * FRAME_ALIGNMENT
