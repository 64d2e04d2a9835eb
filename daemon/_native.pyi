"""Types of the extension module built from daemon/native.cpp."""

from collections.abc import Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

class MepFragments:
    """What has come of one MEP, of a run of this number of sources; a source is named by its column among them.

    ``bytes`` is with padding, ``last_ns`` the time of the last fragment, ``sources`` a bit mask over the columns,
    ``rows`` a view i64[n, 3] of source id, offset and size in the order of arrival.
    """

    bytes: int
    last_ns: int
    def __init__(self, n_sources: int) -> None: ...
    def has(self, column: int) -> bool: ...
    def __len__(self) -> int: ...
    @property
    def sources(self) -> int: ...
    @property
    def rows(self) -> NDArray[np.int64]: ...

class OpenMeps:
    """The MEPs that are open, as compiled code sees them, and the cursor of each slot: where the next fragment goes."""

    def __init__(self, n_slots: int, mep_bytes: int) -> None: ...
    def start_run(self, run: int, sources: Sequence[int]) -> None: ...
    def open(self, mep: int, slot: int, first_event: int, n_events: int, fragments: MepFragments) -> None: ...
    def add(self, mep: int, source: int, offset: int, size: int, now_ns: int) -> bool:
        """A fragment that an open MEP lacks lies at its place; whether the MEP is complete. Raises ValueError."""

    def close(self, mep: int) -> None: ...
    def cursor(self, slot: int) -> int: ...
    def set_cursor(self, slot: int, at: int) -> None: ...

class SourceCounters:
    """What is counted of one readout source.

    ``fragments`` and ``bytes`` are of all whose header could be read, rejected ones included; ``missing`` are MEPs that
    were closed without it; ``last_seen_ns`` is the loop time (monotonic) of its last fragment.
    """

    fragments: int
    bytes: int
    missing: int
    last_seen_ns: int | None
    def __init__(
        self, *, fragments: int = 0, bytes: int = 0, missing: int = 0, last_seen_ns: int | None = None
    ) -> None: ...

class SourceTable:
    """The counters of the sources that are expected, by source id."""

    def expect(self, sources: Sequence[int]) -> None: ...
    def count(self, source: int, nbytes: int, now_ns: int) -> None:
        """Count a fragment of a source, if that is expected."""

    def copy(self) -> SourceTable: ...
    def items(self) -> list[tuple[int, SourceCounters]]: ...
    def __getitem__(self, source: int) -> SourceCounters: ...
    def __contains__(self, source: int) -> bool: ...
    def __len__(self) -> int: ...

class ConnectionTally:
    """Messages and bytes (as they were on the wire) that were taken of each connection of one socket, by descriptor."""

    def __init__(self, overhead: int) -> None: ...
    def take(self, descriptor: int, nbytes: int, parts: int) -> bool: ...
    def empty(self) -> None: ...
    def of(self, descriptor: int) -> tuple[int, int]: ...
    @property
    def total(self) -> int: ...
    @property
    def times_empty(self) -> int: ...
    def refuse(self, descriptor: int) -> None: ...
    def admit(self, descriptor: int) -> None: ...

class Outcome(Enum):
    """Why a loop over frames ends: nothing more, its time is over, a MEP is complete, a frame is left to Python."""

    EMPTY = 0
    PAUSED = 1
    COMPLETE = 2
    LEFT = 3
    FAILED = 4

class FragmentIntake:
    """Takes fragments of MEPs that are open to the slots, writable buffers.

    `n_threads` copy, the one that calls among them; `piece_bytes` is what one of them copies at a time.
    """

    is_on: bool
    """Whether any are taken; else all frames are left."""
    def __init__(
        self,
        meps: OpenMeps,
        sources: SourceTable,
        slots: Sequence[memoryview],
        max_mfp_bytes: int,
        n_threads: int = 1,
        piece_bytes: int = ...,
    ) -> None: ...
    def take_range(
        self, range: memoryview, at: int, now_ns: int, true_ns: int, end_ns: int
    ) -> tuple[Outcome, int, int, int]:
        """Take frames of shared memory from `at` on; returns begin and end of the last one, and where the next is."""

    def take_counts(self) -> tuple[int, int]:
        """Frames and bytes that were taken since the last call."""

    @property
    def last_mep(self) -> int:
        """The MEP of the last fragment that was taken."""

class SocketIntake:
    """Receives the frames of a socket of the libzmq that pyzmq (its extension module `library`) has loaded."""

    def __init__(self, library: str, intake: FragmentIntake, tally: ConnectionTally) -> None: ...
    def receive(self, socket: int, now_ns: int, true_ns: int, end_ns: int) -> Outcome: ...
    def left_frame(self) -> memoryview:
        """After LEFT: the bytes of the frame, in the memory of libzmq."""

    @property
    def error(self) -> int:
        """After FAILED."""
