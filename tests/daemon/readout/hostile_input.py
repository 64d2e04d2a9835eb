"""Drives a node's readout with mutated frames and control messages, and checks it after each of them.

Everything is the node's own but sockets, threads and clock: codec, `FeederProtocol`, `FrameHandler` with the compiled
checks, event builder. Between the mutations feeders do what feeders do, so that MEPs are built, runs begin and end.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import structlog

from hltnode.daemon._native import SenderAnswers
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.stimuli_and_effects import Place
from hltnode.daemon.readout.frame_handler import FrameHandler
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.readout.run_keeper import RunNotClosedError
from hltnode.protocol.errors import MessageError, ProtocolError, RejectReason
from hltnode.protocol.fragment_frame import has_right_crc, inspect_frame
from hltnode.protocol.raw_data.bank_types import TYPES_OF_NODE
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE
from hltnode.protocol.transport.control_messages import decode_message, encode_message
from hltnode.protocol.transport.feeder_messages import Error
from hltnode.protocol.transport.frame_header import HEADER_SIZE, check_crc, decode_header, set_frame_tokens
from hltnode.protocol.transport.messages import as_remark
from hltnode.protocol.transport.run_control_messages import Command, RunState
from tests.daemon.readout.bench import EVENTS, MS, RUN, SECOND, Bench
from tests.daemon.readout.mutations import FrameSource, Hints, any_message, mutate_frame

FEEDERS = ("a", "b", "c", "d")
SOURCES = (1, 2, 3, 4)
STRANGERS = (b"x", b"y")
MAX_FRAME_BYTES = 800
MAX_FRAGMENT = 12
FORBIDDEN = {1: RejectReason.UNKNOWN_TOKEN, 2: RejectReason.FOREIGN_SOURCE}
"""Tokens without permission; all others have it. One of `WRONG_TOKENS` frames has one of them."""
WRONG_TOKENS = 16
GUARD = 0xA5
# One of this number of mutations is a control message, the others are frames.
CONTROL_SHARE = 8
# Mutations between two checks of all memory. Each frame is checked at its own place.
LOOK_EVERY = 256
# One of this number of frames is also checked by the Python parsers.
ORACLE_EVERY = 16
# Mutations after which the memory of the process is measured first: by then everything has its size.
WARM_AFTER = 10_000
MAX_GROWTH = 16 << 20


@dataclass
class Outcome:
    """The counts of the mutations of one chunk."""

    mutations: int = 0
    frames: Counter[str] = field(default_factory=Counter)
    """By class of the accounts: built, each reason of a refusal, and so on; `received` is their sum."""
    messages: Counter[str] = field(default_factory=Counter)
    """Control messages by type, or by the reason why they could not be read."""
    process: int = 0
    resident: int = 0
    """Bytes of memory of the process at the end."""


class HostileInput:
    """One node's readout under mutated input; all follows from the seed."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._token_rng = Random(seed + 1)
        self._bench = Bench(feeders=len(FEEDERS))
        limits = self._bench.builder.pool.limits
        # A guard on each side of each slot.
        self._memory = [bytearray([GUARD]) * (limits.input_bytes + 128) for _ in self._bench.builder.pool.slots]
        self._slots = [memoryview(memory)[64:-64] for memory in self._memory]
        self._expected = [bytes(memory) for memory in self._memory]
        self._handler = FrameHandler(
            self._bench.builder,
            self._slots,
            self._bench.counters,
            self._bench.carry_out,
            lambda token, _run, _source: FORBIDDEN.get(token),
            SenderAnswers(),
            max_frame_bytes=MAX_FRAME_BYTES,
            clock=ReadingClock(lambda: self._bench.now),
        )
        self._source = FrameSource(EVENTS, MAX_FRAGMENT)
        self._sent: deque[bytes] = deque(maxlen=64)
        self._queue: deque[tuple[int, int]] = deque()
        self._run = RUN
        self._life = 0
        self._next_mep = 0
        self._idle = 0
        self._messages: Counter[str] = Counter()
        self._actions: tuple[tuple[Callable[[], None], int], ...] = (
            (self._feeders_confirm, 30),
            (self._bench.finish_batches, 60),
            (lambda: self._bench.pass_time(MS * self._rng.choice((1, 5, 30, 120))), 20),
            (lambda: self._bench.pass_time(self._rng.choice((1, 6, 61)) * SECOND), 2),
            (self._files_are_rewritten, 5),
            (self._operator_acts, 2),
            (self._connections_change, 2),
        )
        self._begin_run()

    def drive(self, mutations: int) -> Outcome:
        """Send this number of mutations; AssertionError names the one after which something was wrong."""
        warm = 0
        for i in range(mutations):
            if i == WARM_AFTER:
                warm = _resident()
            if self._rng.randrange(CONTROL_SHARE):
                self._send_frame(i)
            else:
                self._send_message(i)
            for _ in range(self._rng.randrange(3)):
                self._send_orderly_frame()
            if self._rng.randrange(8) == 0:
                self._act()
            if i % LOOK_EVERY == 0:
                self._look(i)
        self._look(mutations)
        resident = _resident()
        assert not warm or resident - warm < MAX_GROWTH, f"memory has grown from {warm} B to {resident} B"
        accounts = accounting(self._bench.counters, self._bench.builder)["fragments"]
        rejected = self._bench.counters.fragments_rejected
        by_reason = {reason.value: count for reason, count in rejected.items() if count}
        taken = {name: accounts[name] for name in ("received", "built", "lost_in_drop", "abandoned", "in_build")}
        frames: Counter[str] = Counter(taken | by_reason)
        assert frames["received"] == sum(frames.values()) - frames["received"], frames
        return Outcome(mutations, frames, self._messages, os.getpid(), resident)

    # Frames

    def _send_frame(self, i: int) -> None:
        rng = self._rng
        if self._sent and rng.randrange(12) == 0:
            frame = bytearray(rng.choice(self._sent))  # once more, or late
        else:
            near = self._next_mep + rng.choice((-40, -8, -2, -1, 0, 0, 0, 1, 2, 3, 8, 63, 64, 1 << 40))
            source = rng.choice((*SOURCES, *SOURCES, 0, 5, 999))
            run = self._run if rng.randrange(10) else rng.choice((0, self._run + 1, (1 << 32) - 1))
            events = None if rng.randrange(10) else rng.choice((1, EVENTS - 1, EVENTS + 1, 30))
            frame = self._source.frame(rng, run, max(0, near), source, events=events)
        if rng.randrange(8):
            mutate_frame(rng, frame)
        if len(frame) >= HEADER_SIZE and self._token_rng.randrange(WRONG_TOKENS) == 0:
            set_frame_tokens([frame], self._token_rng.choice(list(FORBIDDEN)))
        self._arrive(bytes(frame), i)

    def _send_orderly_frame(self) -> None:
        """The next valid frame of the feeders."""
        if not self._queue:
            if self._bench.builder.window.outstanding <= 0:
                return
            meps = [self._next_mep, self._next_mep + 1]
            self._next_mep += 2
            self._queue.extend((mep, source) for source in SOURCES for mep in meps)
        mep, source = self._queue.popleft()
        frame = bytes(self._source.frame(self._rng, self._run, mep, source))
        self._sent.append(frame)
        self._arrive(frame, -1)

    def _arrive(self, frame: bytes, i: int) -> None:
        """Hand over one frame, and follow it: one count, and no byte outside its place."""
        bench = self._bench
        counters, builder = bench.counters, bench.builder
        received, rejected = counters.fragments_received, sum(counters.fragments_rejected.values())
        is_readable, refusal, run, source, mep, size, first_event, n_events, token = inspect_frame(frame)
        forbidden = FORBIDDEN.get(token) if is_readable else None
        before = counters.fragments_rejected.copy()
        place: object = None
        if is_readable and not refusal and forbidden is None and len(frame) <= MAX_FRAME_BYTES:
            place = builder.place_for(bench.now, run, source, mep, size, first_event, n_events)
        try:
            self._handler.frame_arrived(frame)
        except Exception as error:
            raise AssertionError(f"mutation {i}: {error!r} from {frame.hex()}") from error
        refused = sum(counters.fragments_rejected.values()) - rejected
        assert counters.fragments_received == received + 1, frame.hex()
        assert refused in (0, 1), frame.hex()
        if forbidden is not None:
            # Whatever else is wrong with it.
            assert counters.fragments_rejected[forbidden] == before[forbidden] + 1, f"mutation {i}: {frame.hex()}"
        if isinstance(place, Place):
            memory = self._memory[place.slot]
            begin = 64 + place.offset
            expected = self._expected[place.slot]
            copied = memory[begin : begin + size]
            assert place.offset + size <= len(memory) - 128
            assert memory == expected[:begin] + copied + expected[begin + size :], f"mutation {i}: {frame.hex()}"
            assert copied == frame[HEADER_SIZE:], f"mutation {i}: {frame.hex()}"
            self._expected[place.slot] = bytes(memory)
        else:
            assert refused == 1, f"mutation {i}: {frame.hex()}"
        self._idle = self._idle + 1 if refused else 0
        if i % ORACLE_EVERY == 0:
            sound = is_readable and not refusal and has_right_crc(frame)
            assert _is_sound(frame) == sound, f"mutation {i}: {frame.hex()}"
            assert sound or refused, f"mutation {i}: {frame.hex()}"
        bench.connections.sent.clear()

    # Control messages

    def _send_message(self, i: int) -> None:
        """Handle a message like the control socket."""
        rng, bench = self._rng, self._bench
        identity = rng.choice((*map(self._identity, FEEDERS), *map(self._identity, FEEDERS), *STRANGERS))
        raw = any_message(rng, self._hints())
        try:
            try:
                message = decode_message(raw)
            except ProtocolError as error:
                self._messages[f"refused: {error.reason}"] += 1
                bench.connections.send((identity,), Error(error.reason, as_remark(str(error))))
                return
            self._messages[type(message).__name__] += 1
            try:
                assert decode_message(encode_message(message)) == message
            except MessageError as error:
                raise AssertionError(f"what was read cannot be written: {error}") from error
            if not isinstance(message, Command):
                bench.protocol.message_arrived(identity, message)
        except Exception as error:
            raise AssertionError(f"mutation {i}: {error!r} from {raw[:2000].hex()} of {identity!r}") from error
        bench.connections.sent.clear()

    def _hints(self) -> Hints:
        near = [max(0, self._next_mep + delta) for delta in (-3, -2, -1, 0, 1, 2)]
        builder = self._bench.builder
        return {
            "feeder": (*FEEDERS, "e", "x" * 64),
            "session": ("f1", "f1", "f2"),
            "run": (self._run, self._run, self._run, self._run + 1, 0),
            "sources": ([1], [2], [3], [4], [1, 2], [9], [], [1, 1]),
            "first_mep": (builder.floor, builder.floor, builder.floor + 1, *near),
            "last_mep": (*near, None),
            "events_per_mep": (EVENTS, EVENTS, 1, EVENTS + 1, 0),
            "meps[]": [[first, last] for first, last in pairwise(near)],
            "source": (*SOURCES, 9),
            "mep": tuple(near),
        }

    # Other activity of the node

    def _act(self) -> None:
        actions, weights = zip(*self._actions, strict=True)
        self._rng.choices(actions, weights)[0]()
        if self._idle > 400 or self._bench.builder.run is None:
            self._begin_run()
        self._bench.written.clear()
        self._bench.summaries.clear()
        self._bench.confirmed.clear()
        self._bench.supervised.clear()
        self._bench.connections.sent.clear()

    def _feeders_confirm(self) -> None:
        """Each feeder repeats its hello with its acknowledged MEPs, and sends lost fragments again."""
        done = self._bench.acknowledgements.ranges(self._run, self._bench.builder.floor)
        below = done[0][1] + 1 if done and done[0][0] <= self._bench.builder.floor else self._bench.builder.floor
        for name in FEEDERS:
            self._bench.hello(
                name, run=self._run, first_mep=below, supervises=name == "a", identity=self._identity(name)
            )
        if below < self._next_mep and below not in self._bench.builder.open and not self._queue:
            self._queue.extend((below, source) for source in SOURCES)

    def _identity(self, name: str) -> bytes:
        """The connection of a feeder; each start of a run makes a new one."""
        return f"{name}{self._life}".encode()

    def _files_are_rewritten(self) -> None:
        for request in self._bench.revoked:
            self._bench.protocol.events_revoked(request.receipt)
        self._bench.revoked.clear()

    def _operator_acts(self) -> None:
        bench, what = self._bench, self._rng.randrange(4)
        if what == 0:
            bench.state = RunState.PAUSED
            bench.control.pause()
        elif what == 1:
            bench.state = RunState.RUNNING
            bench.control.resume()
        elif what == 2:
            with contextlib.suppress(RunNotClosedError):
                bench.control.close(self._rng.choice((None, self._run, self._run + 1)))
        else:
            bench.control.close_open()
            self._drain()
            bench.control.leave_run()
            bench.control.open_runs(None)
            bench.state = RunState.RUNNING

    def _connections_change(self) -> None:
        self._bench.connections.alive = {self._identity(name) for name in FEEDERS if self._rng.randrange(2)}

    def _drain(self) -> None:
        while self._bench.batches:
            self._bench.finish_batches()

    def _begin_run(self) -> None:
        """All feeders return after a long absence, to this run or another one."""
        bench = self._bench
        bench.state = RunState.RUNNING
        bench.control.resume()
        for _ in range(4):
            bench.pass_time(61 * SECOND)
            self._drain()
        self._files_are_rewritten()
        self._run = RUN + self._rng.randrange(4)
        self._life += 1
        bench.control.open_runs(self._run)
        bench.control.open_runs(0)
        self._feeders_confirm()
        self._queue.clear()
        done = bench.acknowledgements.ranges(self._run)
        self._next_mep = max(bench.builder.floor, done[-1][1] + 1 if done else 0)
        self._idle = 0

    def _look(self, i: int) -> None:
        """Everything that must hold at any time."""
        bench = self._bench
        accounts = accounting(bench.counters, bench.builder)
        assert closes(accounts), f"mutation {i}: {accounts}"
        assert bench.counters.accounting_broken == 0, f"mutation {i}"
        for memory, expected in zip(self._memory, self._expected, strict=True):
            assert memory == expected, f"mutation {i}: bytes were written outside of a place"
        assert bench.builder.window.held >= 0, f"mutation {i}"


def _is_sound(frame: bytes) -> bool:
    """By the parsers in Python: frame and MFP could be taken, if the builder wants them."""
    try:
        header = decode_header(frame, max_bytes=len(frame))
        check_crc(header, frame)
        mfp = Mfp.parse(memoryview(frame)[HEADER_SIZE:])
        can_be_written = TYPES_OF_NODE.isdisjoint(mfp.types.tolist()) and max(mfp.sizes.tolist()) <= MAX_PAYLOAD_SIZE
        return mfp.source_id == header.source_id and can_be_written
    except ProtocolError:
        return False


def _resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def drive_chunk(seed: int, mutations: int) -> Outcome:
    """Drive a readout of its own with one chunk; log lines are made and dropped."""
    structlog.configure(
        processors=[structlog.processors.JSONRenderer(default=repr)], logger_factory=structlog.ReturnLoggerFactory()
    )
    try:
        return HostileInput(seed).drive(mutations)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error!r}") from error
