"""Types of the extension module built from daemon/native.cpp."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

class MepFragments:
    """The arrived fragments of one MEP, in a run with this number of sources; a source is given by its column.

    ``bytes``: size with padding. ``last_ns``: time of the last fragment. ``sources``: bit mask over the columns.
    ``rows``: view i64[n, 3] of source id, offset and size in order of arrival.
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
    """The open MEPs as the compiled code sees them, and the cursor of each slot: the place of the next fragment."""

    def __init__(self, n_slots: int, mep_bytes: int) -> None: ...
    def start_run(self, run: int, sources: Sequence[int]) -> None: ...
    def open(self, mep: int, slot: int, first_event: int, n_events: int, fragments: MepFragments) -> None: ...
    def add(self, mep: int, source: int, offset: int, size: int, now_ns: int) -> bool:
        """Note a copied fragment of an open MEP; True if the MEP is complete. Raises ValueError."""

    def close(self, mep: int) -> None: ...
    def note_refused(self, source: int, mep: int, *, is_late: bool, is_sound: bool) -> None:
        """Remember a fragment that was refused because it is in its MEP, or too late for it.

        Until a MEP is opened or closed, or `forget_refused`, compiled code refuses further copies; those with the right
        CRC only if this one had it.
        """

    def forget_refused(self) -> None: ...
    def cursor(self, slot: int) -> int: ...
    def set_cursor(self, slot: int, at: int) -> None: ...

class SenderAnswers:
    """Remembers the answers of `FramePermissions.refusal`, each for all frames to which it applies, until `forget`.

    ``late_until_ns``: until this time a frame without permission may have been sent with one that has ended since.
    ``times_forgotten``: number of calls of `forget`.
    """

    late_until_ns: int
    def __init__(self) -> None: ...
    def permit(self, source: int, token: int) -> None:
        """Remember that frames of this source with this token may be built."""

    def permits(self, source: int, token: int) -> bool:
        """Whether frames of this source with this token may be built."""

    def hold(self, token: int) -> None:
        """Note that a feeder has this token."""

    def release(self, token: int) -> None:
        """Note that no feeder has this token any more."""

    def refuse_unheld(self) -> None:
        """Remember that tokens which no feeder has are unknown."""

    def refuse_token(self, token: int) -> None:
        """Remember that a held token counts as unknown."""

    def refuse_other_runs(self, token: int, run: int) -> None:
        """Remember that a held token has no permission outside this run."""

    def refuse_other_sources(self, token: int, sources: Sequence[int]) -> None:
        """Remember that a held token has permission for no source except these."""

    def refusal(self, token: int, run: int, source: int) -> str | None:
        """The reason to refuse a frame; None without an answer of the rule."""

    def forget(self) -> None:
        """Forget all answers: feeders have come or left."""

    @property
    def times_forgotten(self) -> int: ...

class SourceCounters:
    """Counters of one readout source.

    ``fragments`` and ``bytes`` count all fragments with a readable header, including rejected ones. ``missing`` counts
    MEPs closed without the source, ``late`` those among them that were closed by their deadline. ``last_seen_ns`` is
    the loop time (monotonic) of its last fragment.
    ``error_banks`` counts the error banks of each type, and is empty before the first.
    """

    fragments: int
    bytes: int
    missing: int
    late: int
    last_seen_ns: int | None
    @property
    def error_banks(self) -> list[int]: ...
    def __init__(
        self, *, fragments: int = 0, bytes: int = 0, missing: int = 0, last_seen_ns: int | None = None
    ) -> None: ...

class SourceTable:
    """Counters of the expected sources, by source id."""

    def expect(self, sources: Sequence[int]) -> None: ...
    def count(self, source: int, nbytes: int, now_ns: int) -> None:
        """Count a fragment of a source, if the source is expected."""

    def set_error_types(self, types: Sequence[int]) -> None:
        """Set the types of the banks that a readout board sends in place of data."""

    def count_error_banks(self, source: int, mfp: memoryview) -> None:
        """Count the error banks of an accepted MFP of a source, if the source is expected."""

    def copy(self) -> SourceTable: ...
    def items(self) -> list[tuple[int, SourceCounters]]: ...
    def __getitem__(self, source: int) -> SourceCounters: ...
    def __contains__(self, source: int) -> bool: ...
    def __len__(self) -> int: ...

class ConnectionGuard:
    """Acts on connections that send too much, in a thread of its own."""

    def __init__(self) -> None: ...
    def add(self, descriptor: int, capacity: float, per_second: float, ends_it: bool) -> None:
        """Follow a connection that may send `capacity` bytes at once, and `per_second` more each second.

        With `ends_it` the guard ends the connection that sends more, else it only reports it, once.
        """

    def remove(self, descriptor: int) -> None:
        """Before the descriptor is closed; an unknown one is ignored."""

    def reported(self) -> list[tuple[int, bool]]:
        """Descriptors that sent too much since the last call, and whether the guard has ended them."""

    @property
    def report_descriptor(self) -> int:
        """Turns readable when there is something to report."""

    def close(self) -> None: ...

class ConnectionTally:
    """Messages and bytes (on the wire) received on each connection of one socket, by descriptor."""

    def __init__(self, overhead: int, most_unpermitted: int, unpermitted_ns: int) -> None: ...
    def take(self, descriptor: int, nbytes: int, parts: int) -> bool: ...
    def unpermitted(self, descriptor: int, number: int, now_ns: int) -> None:
        """Count a message without permission, by its number on its connection from 1.

        The connection is reported after `most_unpermitted` in a row, without a permitted one between them, over at
        least `unpermitted_ns`.
        """

    def take_reported(self) -> list[int]:
        """Descriptors of the connections reported since the last call."""

    def empty(self) -> None: ...
    def of(self, descriptor: int) -> tuple[int, int]: ...
    @property
    def total(self) -> int: ...
    @property
    def times_empty(self) -> int: ...
    def refuse(self, descriptor: int) -> None: ...
    def admit(self, descriptor: int) -> None: ...

class Outcome(Enum):
    """Why a loop over frames ends: no more input, time limit, complete MEP, frame left to Python, error, or the last
    frame of a MEP that is not complete."""

    EMPTY = 0
    PAUSED = 1
    COMPLETE = 2
    LEFT = 3
    FAILED = 4
    ENDED = 5

class FragmentIntake:
    """Copies fragments of open MEPs into the slots, which are writable buffers.

    `n_threads` threads copy, including the calling thread, in pieces of `piece_bytes`.
    """

    is_on: bool
    """If false, all frames are left to Python."""
    def __init__(
        self,
        meps: OpenMeps,
        senders: SenderAnswers,
        sources: SourceTable,
        slots: Sequence[memoryview],
        max_mfp_bytes: int,
        n_threads: int = 1,
        piece_bytes: int = ...,
    ) -> None: ...
    def take_range(
        self, range: memoryview, at: int, now_ns: int, true_ns: int, end_ns: int
    ) -> tuple[Outcome, int, int, int]:
        """Process frames of shared memory from `at` on; returns start and end of the last frame, and the next start."""

    def take_counts(self) -> tuple[int, int]:
        """Frames and bytes processed since the last call, refused ones included."""

    def take_refused(self) -> list[tuple[str, int, int, bytes]]:
        """Frames refused since the last call: reason, number, size of the first frame and its start.

        The start is the header, or the whole frame if it is shorter.
        """

    @property
    def last_mep(self) -> int:
        """The MEP of the last processed fragment."""

class SocketIntake:
    """Receives frames of a ZeroMQ socket, with the libzmq loaded by pyzmq (its extension module `library`)."""

    def __init__(self, library: str, intake: FragmentIntake, tally: ConnectionTally) -> None: ...
    def receive(self, socket: int, now_ns: int, true_ns: int, end_ns: int) -> Outcome: ...
    def left_frame(self) -> tuple[memoryview, int, int]:
        """After LEFT: the bytes of the frame, in the memory of libzmq; the descriptor of its connection, -1 if it has
        none, and the number of the message there, from 1."""

    @property
    def error(self) -> int:
        """After FAILED: the error number of libzmq."""

class UdpIntake:
    """Receives UDP datagrams in threads of its own and joins them into MEPs.

    `senders` are IP addresses, each with the sources that it may send. Raises OSError if the address cannot be bound,
    ValueError for settings that do not fit.
    """

    def __init__(
        self,
        intake: FragmentIntake,
        host: str,
        port: int,
        *,
        n_sockets: int,
        receive_bytes: int,
        packets_per_mep: int,
        events_per_packet: int,
        open_meps: int,
        datagram_bytes: int,
        flush_ns: int,
        sources: Sequence[int],
        senders: Sequence[tuple[str, Sequence[int]]],
    ) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> bool:
        """End the threads; False if a kernel hangs in one of them."""

    def fileno(self) -> int:
        """Readable when a MEP is ready."""

    def decide_directly(
        self,
        address: int,
        batch: object,
        begin: Callable[[], object],
        send: Callable[[int, int, int], bool],
        drop: Callable[[], object],
        *,
        mep_bytes: int,
        mfp_bytes: int,
        deadline_ns: int,
    ) -> None:
        """Have MEPs decided in the receiving threads while `arm` allows it. Call it before `start`.

        `address` is that of the functions of `batch` (`DirectBatch`). `send` gets the id, first event and number of
        events of a computed MEP, and returns whether its decision was sent. `drop` is called after a computation
        whose decision was not sent. `begin` is called in each thread at its start. None of them may raise.
        """

    def arm(self, below: int) -> None:
        """Allow the next MEP to be decided if its id is below this one and no other MEP is ready."""

    def disarm(self, longest_ns: int) -> bool:
        """End that permission; waits for a computation, at most for this time. True: a decided MEP must be received."""

    @property
    def decided(self) -> tuple[int, int, int] | None:
        """Monotonic ns at which the last MEP was joined, computed and sent, if it was decided directly."""

    @property
    def computes_since_ns(self) -> int:
        """When the computation that lasts began; 0: there is none."""

    def welcome(self, first_mep: int, token: int) -> None:
        """Give the MEPs of the accepted run ids from `first_mep` on, and their frames this token."""

    def receive(self, now_ns: int, true_ns: int, end_ns: int, n_meps: int) -> Outcome:
        """Hand over a ready MEP; none new with `n_meps` = 0."""

    def left_frame(self) -> memoryview:
        """After LEFT: the bytes of the frame, valid until the next call of `receive`."""

    def counts(self) -> dict[str, Any]:
        """Counters since the start, and the bursts that have ended since the last call."""

    def leave_run(self) -> None:
        """Discard and count all MEPs, and accept the run of the next datagram."""

    def end_run(self) -> None:
        """The same at the end of a run: its datagrams are refused as late from then on."""

    def reopen_run(self, run: int) -> None:
        """Accept a run again that has ended; 0: each of them."""

    @property
    def following_run(self) -> int | None:
        """The run whose datagrams ended the current one after a silence; None: no other run did."""

    @property
    def run(self) -> int | None: ...
    @property
    def is_run_over(self) -> bool: ...
    @property
    def first_ns(self) -> int:
        """When the first datagram of the last MEP came, in monotonic ns."""

    @property
    def next_mep(self) -> int: ...
    @property
    def last_mep(self) -> int: ...
    @property
    def port(self) -> int: ...
