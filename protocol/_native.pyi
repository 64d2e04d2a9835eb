"""Types of the extension module built from protocol/native.cpp."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.raw_data.raw_bank import RawBank

_Bank = TypeVar("_Bank")

MAX_BANKS_OF_EVENT: int

def jenkins(bytes: memoryview) -> int: ...
def fragment_bytes(mfp: memoryview, n: int, align: int) -> int: ...
def encode_banks(banks: Sequence[tuple[int, int, int, memoryview]]) -> bytes: ...
def scan_banks(view: memoryview, type: type[_Bank]) -> tuple[list[_Bank], int]: ...
def count_banks(
    banks: list[RawBank], picked: Sequence[int]
) -> tuple[list[tuple[int, int, int, int]], list[RawBank]]: ...
def find_particles(data: bytes, at: int, n: int, fixed_size: int) -> tuple[list[int], list[int], int]: ...
def inspect_frame(frame: Buffer) -> tuple[bool, str, int, int, int, int, int, int, int]: ...
def has_right_crc(frame: Buffer, implementation: int = 0) -> bool: ...
def copy_mfp(frame: Buffer, slot: bytearray | memoryview, offset: int, implementation: int = 0) -> bool: ...
def joined_crc32c(first: int, second: int, second_size: int) -> int: ...
def crc32c_implementations() -> list[str]: ...
def refusal_of_placed(
    slot: memoryview, offset: int, size: int, source: int, first_event: int, n_events: int
) -> str: ...
def offset_in(segment: memoryview, part: Buffer) -> int: ...
def ranges_in(segment: memoryview, frames: list[Buffer], most: int) -> tuple[list[tuple[int, int]], int]: ...
def find_events(bytes: memoryview, at: int, most: int, verify: bool) -> tuple[list[int], list[int], bool]: ...
def mep_places(mep: Buffer) -> tuple[str, int, int, int, NDArray[np.int64]]: ...
def join_mfps(slot: Buffer, rows: NDArray[np.int64]) -> bytes: ...
def seal_frames(
    buffer: NDArray[np.uint8],
    places: Sequence[int],
    sizes: Sequence[int],
    run: int,
    mep: int,
    send_time_ns: int,
) -> None: ...
def set_frame_tokens(frames: list[Buffer], token: int) -> None: ...

class Packer:
    def __init__(
        self, sources: Sequence[int], versions: Sequence[int], error_type: int, error_types: Sequence[int]
    ) -> None: ...
    def route(self, key: int, column: int) -> None: ...
    def measure(
        self, bytes: memoryview, begins: NDArray[np.uint64], ends: NDArray[np.uint64]
    ) -> tuple[list[int], tuple[int, int, int], list[int], list[int]]: ...
    def pack(
        self,
        bytes: memoryview,
        begins: NDArray[np.uint64],
        ends: NDArray[np.uint64],
        places: Sequence[int],
        sizes: Sequence[int],
        to: NDArray[np.uint8],
        first_event: int,
    ) -> None: ...

class OutputListTable(Protocol):
    @property
    def bank_type(self) -> int: ...
    @property
    def description(self) -> bytes: ...
    @property
    def offsets(self) -> NDArray[np.uint32]: ...
    @property
    def values(self) -> Sequence[NDArray[np.uint8]]: ...

def index_banks(bytes: memoryview, begins: Sequence[int], ends: Sequence[int]) -> tuple[bytes, list[int]]: ...
def index_objects(events: Sequence[Sequence[RawBank]]) -> tuple[bytes, bytes, list[int]]: ...
def bank_objects(
    rows: NDArray[np.uint8], begin: int, end: int, buffers: tuple[memoryview, ...], type: type[_Bank]
) -> list[_Bank]: ...

class MfpPacker:
    def __init__(self, error_type: int, error_types: Sequence[int]) -> None: ...
    def route(self, key: int, column: int) -> None: ...
    def scan(
        self, rows: NDArray[np.uint8], begins: NDArray[np.uint64], ends: NDArray[np.uint64]
    ) -> tuple[list[int], list[int], bytes]: ...
    def measure(
        self,
        rows: NDArray[np.uint8],
        begins: NDArray[np.uint64],
        ends: NDArray[np.uint64],
        skipped: NDArray[np.uint8],
        variants: NDArray[np.uint8],
    ) -> tuple[tuple[int, int, int, int], list[int], list[int], list[int]]: ...
    def pack(
        self,
        rows: NDArray[np.uint8],
        begins: NDArray[np.uint64],
        ends: NDArray[np.uint64],
        buffers: tuple[memoryview, ...],
        columns: Sequence[int],
        sources: Sequence[int],
        versions: Sequence[int],
        places: Sequence[int],
        sizes: Sequence[int],
        first_event: int,
        to: NDArray[np.uint8],
    ) -> None: ...

def window_list(
    *,
    text: bytes,
    offsets: NDArray[np.uint32],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    columns: list[NDArray[np.uint8]],
    start_column: int,
    end_column: int,
    kept: NDArray[np.uint8],
    first_ns: int,
    length_ns: int,
    room: int,
) -> bytes | None: ...

class WindowLayout:
    in_vectors: bool
    def __init__(
        self,
        *,
        sub_slice_ns: int,
        margin_before: int,
        margin_behind: int,
        hit_size: int,
        time_offset: int,
        time_bytes: int,
        big_endian: bool,
        unit_numerator: int,
        unit_denominator: int,
        no_hits: list[int],
        clock_offsets_ns: dict[int, int] = ...,
    ) -> None: ...

class RecordEncoder:
    def __init__(
        self,
        *,
        key: int,
        tck: int,
        task_id: int,
        source_id: int,
        not_run: int,
        unreadable: int,
        cut: int,
        error_bit: int,
        lumi_bit: int,
        routing: NDArray[np.uint32],
        lumi_key: int,
        lumi_words: int,
        lumi_counters: NDArray[np.uint32],
        checksums: bool,
        list_left_out: int,
    ) -> None: ...
    def of_batch(
        self,
        buffer: memoryview,
        meps: list[tuple[int, NDArray[np.int64]]],
        events: NDArray[np.int64],
        run: int,
        lines: NDArray[np.uint32],
        flags: NDArray[np.uint32],
        counts: NDArray[np.uint32],
        selected_offsets: NDArray[np.uint32],
        selected_words: NDArray[np.uint32],
        ends: NDArray[np.uint64],
        lists: Sequence[OutputListTable],
    ) -> tuple[bytes, int, int]: ...
    def of_events(
        self,
        banks: list[list[RawBank]],
        events: NDArray[np.int64],
        lines: NDArray[np.uint32],
        flags: NDArray[np.uint32],
        counts: NDArray[np.uint32],
        selected_offsets: NDArray[np.uint32],
        selected_words: NDArray[np.uint32],
        ends: NDArray[np.uint64],
        lists: Sequence[OutputListTable],
    ) -> tuple[bytes, int, int]: ...
    def of_windows(
        self,
        layout: WindowLayout,
        buffer: memoryview,
        meps: list[tuple[int, NDArray[np.int64]]],
        slices: NDArray[np.uint64],
        missing: NDArray[np.uint8],
        run: int,
        lines: NDArray[np.uint32],
        flags: NDArray[np.uint32],
        offsets: NDArray[np.uint32],
        starts: NDArray[np.int32],
        window_ends: NDArray[np.int32],
        window_lines: NDArray[np.uint32],
        kept: NDArray[np.uint8],
    ) -> tuple[bytes, bytes, bytes, int, int, int, int, int, int]: ...

class DecisionWriter:
    def __init__(self, node: str, chain: str, n_lines: int, version: int) -> None: ...
    def write(
        self,
        run: int,
        mep: int,
        seq: int,
        first_event: int,
        n_events: int,
        tck: int,
        accepted: NDArray[np.uint8],
        lines: NDArray[np.uint32],
        flags: NDArray[np.uint32],
    ) -> bytes: ...
