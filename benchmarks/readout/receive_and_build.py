"""Receive and build against a bare PULL loop: the same frames over TCP from another process, in turn.

The baseline receives each frame with recv_into and discards it. The node drains the socket, checks header, CRC32C
and MFP, builds MEPs of eight sources (of 1,024 if frames are small) and copies each MFP to its place in a slot. Slots
are freed when they are sealed.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop
import zmq

from benchmarks.measure import Comparison, Result, Stopwatch, Throughput, compare_in_turn
from hltnode.daemon._native import SenderAnswers
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    BuilderLimits,
    Effect,
    MepsAcknowledged,
    SealSlot,
    SlotFreed,
    StartRun,
)
from hltnode.daemon.machine.malloc_tuning import keep_heap
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.frame_handler import FrameHandler
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.readout.receiver import Receiver
from hltnode.daemon.security.received_input import ReceivedInput
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.frame_header import encode_frame

FIGURES = "receive"
KIB = 1024
FRAME_BYTES = (KIB, 64 * KIB, 256 * KIB, 4096 * KIB)
TARGETS = {KIB: None, 64 * KIB: 0.95, 256 * KIB: 0.95, 4096 * KIB: 0.95}
TOTAL_BYTES = 512 * KIB * KIB
MAX_FRAMES = 1 << 17
EVENTS_PER_MEP = 64
RUN = 7
HWM = 8
RUNS = 15
SLOT_BYTES = 128 * KIB * KIB
MAX_MEP_BYTES = 40 * KIB * KIB


def sources_of(frame_bytes: int) -> range:
    """The sources of a readout with frames of this size."""
    return range(4096, 4096 + (1024 if frame_bytes <= 16 * KIB else 8))


def make_frames(frame_bytes: int) -> list[bytes]:
    """Whole MEPs, source by source, about TOTAL_BYTES or MAX_FRAMES in total."""
    sources = sources_of(frame_bytes)
    fragment = bytes(range(256)) * (frame_bytes // EVENTS_PER_MEP // 256 + 1)
    size = (frame_bytes - 512) // EVENTS_PER_MEP & ~7
    n_meps = min(TOTAL_BYTES // frame_bytes, MAX_FRAMES) // len(sources)
    frames = []
    for mep in range(n_meps):
        for source in sources:
            mfp = encode_mfp(
                source_id=source,
                event_id=mep * EVENTS_PER_MEP,
                version=3,
                types=bytes([73]) * EVENTS_PER_MEP,
                fragments=[fragment[:size]] * EVENTS_PER_MEP,
            )
            frames.append(encode_frame(mfp, run=RUN, mep_id=mep, source_id=source))
    return frames


def send(frame_bytes: int, orders: Connection) -> None:
    """Sender process: for each requested endpoint, connect and send all frames once."""
    frames = make_frames(frame_bytes)
    context = zmq.Context()
    orders.send(len(frames))
    while True:
        endpoint = orders.recv()
        with context.socket(zmq.PUSH) as socket:
            socket.setsockopt(zmq.SNDHWM, HWM)
            socket.setsockopt(zmq.LINGER, 30_000)
            socket.connect(endpoint)
            for frame in frames:
                socket.send(frame, copy=False)


def receive_bare(frame_bytes: int, orders: Connection) -> None:
    """Baseline process: for each requested number of frames, report the endpoint, receive them, report the rate."""
    buffer = bytearray(2 * frame_bytes)
    n_first = len(sources_of(frame_bytes))
    while True:
        n_frames = orders.recv()
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        with context.socket(zmq.PULL) as socket:
            socket.setsockopt(zmq.RCVHWM, HWM)
            socket.bind("tcp://127.0.0.1:*")
            orders.send(socket.getsockopt_string(zmq.LAST_ENDPOINT))
            for _ in range(n_first):
                socket.recv_into(buffer)
            watch = Stopwatch()
            for _ in range(n_frames - n_first):
                socket.recv_into(buffer)
            measured = watch.throughput(n_frames - n_first)
        context.term()
        orders.send(measured)


def receive_and_build(frame_bytes: int, orders: Connection) -> None:
    """Node process: like the baseline, with receiver and event builder of the node."""
    keep_heap()
    buffers = [memoryview(bytearray(b"\1") * SLOT_BYTES) for _ in range(3)]
    while True:
        n_frames = orders.recv()
        orders.send(uvloop.run(receive_frames(orders, frame_bytes, n_frames, buffers)))


class Peer:
    """A process of this benchmark and the pipe to it."""

    def __init__(self, target: Callable[[int, Connection], None], frame_bytes: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.orders, theirs = spawn.Pipe()
        self._process = spawn.Process(target=target, args=(frame_bytes, theirs), daemon=True)
        self._process.start()

    def close(self) -> None:
        self._process.terminate()
        self._process.join()


def one_pass(sender: Peer, receiver: Peer, n_frames: int) -> Throughput:
    """One pass from sender to receiver, measured by the receiver."""
    receiver.orders.send(n_frames)
    sender.orders.send(receiver.orders.recv())
    measured: Throughput = receiver.orders.recv()
    return measured


def compare_receivers(
    frame_bytes: int, first: Callable[[int, Connection], None], second: Callable[[int, Connection], None]
) -> Comparison:
    """Measure two receivers with one sender, in turn."""
    peers = [Peer(target, frame_bytes) for target in (send, first, second)]
    sender, *receivers = peers
    n_frames = sender.orders.recv()
    try:
        one, other = (partial(one_pass, sender, receiver, n_frames) for receiver in receivers)
        return compare_in_turn(one, other, RUNS)
    finally:
        for peer in peers:
            peer.close()


def results(what: str, baseline: str, frame_bytes: int, found: Comparison, target: float | None) -> Iterator[Result]:
    """The rows of one frame size: frames per second, and processor time per frame."""
    name = f"{what}{frame_bytes // KIB} KiB frames"
    gbits = found.second.per_second * frame_bytes * 8e-9
    yield Result(
        f"{name} ({gbits:.1f} Gbit/s)",
        found.second.per_second,
        "frames/s",
        f"{baseline}: {found.first.per_second:,.0f} frames/s",
        found.ratio,
        target,
    )
    yield Result(
        f"{name}, processor time",
        found.second.cpu_us,
        "µs/frame",
        f"{baseline}: {found.first.cpu_us:,.1f} µs/frame",
        found.cpu_ratio,
        target,
    )


async def receive_frames(
    orders: Connection,
    frame_bytes: int,
    n_frames: int,
    buffers: list[memoryview],
    sealed: Callable[[EventBuilder, int], None] = lambda _builder, _slot: None,
) -> Throughput:
    """Frames through receiver and builder; `sealed` is called with each slot before it is freed."""
    limits = SlotLimits(input_bytes=SLOT_BYTES, events=1 << 16, meps=1024, fragments=1 << 16, mep_bytes=MAX_MEP_BYTES)
    pool = SlotPool(3, limits)
    counters = Counters()
    builder = EventBuilder(
        pool,
        BuilderLimits(
            mep_timeout_ns=10**10,
            feeder_timeout_ns=10**10,
            overtaken_ns=10**9,
            evict_ns=10**9,
            flush_deadline_ns=10**8,
            closed_ring=1 << 16,
        ),
        counters,
    )
    sources = sources_of(frame_bytes)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Throughput] = loop.create_future()
    watch: Stopwatch | None = None

    def carry_out(effects: Sequence[Effect]) -> None:
        nonlocal watch
        watch = watch or Stopwatch()  # the measurement starts when the first MEP closes
        for effect in effects:
            if isinstance(effect, SealSlot):
                sealed(builder, effect.batch.slot)
                carry_out(builder.handle(time.monotonic_ns(), SlotFreed(effect.batch.slot)))
                built = tuple(mep.mep for mep in effect.batch.meps)
                carry_out(builder.handle(time.monotonic_ns(), MepsAcknowledged(built)))
        if counters.fragments_received == n_frames and not done.done():
            done.set_result(watch.throughput(n_frames - len(sources)))

    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    handler = FrameHandler(
        builder,
        buffers,
        counters,
        carry_out,
        lambda _token, _run, _source: None,
        SenderAnswers(),
        max_frame_bytes=16 << 20,
        clock=ReadingClock(time.monotonic_ns),
    )
    receiver = Receiver(context, "tcp://127.0.0.1:*", handler, max_frame_bytes=16 << 20, received=ReceivedInput())
    builder.handle(0, StartRun(run=RUN, sources=tuple(sources), first_mep=0, events_per_mep=EVENTS_PER_MEP))
    receiver.start(loop)
    orders.send(receiver.endpoint)
    measured = await done
    receiver.close()
    context.term()
    if counters.fragments_built != n_frames:
        raise RuntimeError(f"{counters.fragments_built} of {n_frames} fragments built: {counters}")
    return measured


def run(_shared: Path) -> Iterator[Result]:
    """Measure each frame size, baseline and node in turn."""
    for frame_bytes in FRAME_BYTES:
        found = compare_receivers(frame_bytes, receive_bare, receive_and_build)
        yield from results("", "bare PULL recv_into", frame_bytes, found, TARGETS[frame_bytes])


def summary(results: list[Result]) -> dict[str, object]:
    """Frames per second, relative to the bare loop, by size."""
    return {_size(frame_bytes): result.ratio for frame_bytes, result in zip(FRAME_BYTES, results[::2], strict=True)}


def _size(nbytes: int) -> str:
    return f"{nbytes // (KIB * KIB)}MiB" if nbytes >= KIB * KIB else f"{nbytes // KIB}KiB"
