"""Types of the extension module built from cpu_executor.cpp and batch_tables.cpp."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def event_order(tables: tuple[int, int, int, int], n_events: int) -> list[int]: ...

class Program:
    def __init__(
        self,
        steps: Sequence[tuple[int, int, int, int]],
        batch_header: int,
        placements: Sequence[tuple[int, int, int, int]] = ...,
        thread_pointers: Sequence[tuple[int, int, int, int, int]] = ...,
        thread_memory: Sequence[int] = ...,
        thread_bytes: int = ...,
        thread_copies: Sequence[tuple[int, int, int]] = ...,
        threads: int = ...,
        tables: tuple[int, int, int, int] = ...,
        parts: Sequence[tuple[int, int, int, bool]] = ...,
    ) -> None: ...
    @property
    def progress(self) -> int: ...
    def run_directly(self) -> None: ...
    def take_nanoseconds(self) -> list[int]: ...

class Executor:
    def __init__(self, threads: int) -> None: ...
    @property
    def threads(self) -> int: ...
    def run(self, program: Program, profile: bool = False, record: bool = False) -> None: ...
    def take_records(self) -> bytes: ...

class DirectBatch:
    def __init__(self, programs: list[Program], tables: TableWriter, input: NDArray[np.uint8]) -> None: ...
    @property
    def address(self) -> int: ...

class TableWriter:
    def __init__(
        self,
        header: int,
        mfp_rows: int,
        mep_rows: int,
        event_rows: int,
        event_flags: int,
        rows: int,
        meps: int,
        events: int,
        max_events_per_mep: int,
    ) -> None: ...
    def fill(self, meps: list[tuple[int, int, NDArray[np.int64]]], data: NDArray[np.uint8]) -> int: ...
