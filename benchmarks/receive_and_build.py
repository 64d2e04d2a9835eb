"""Receive and build against a bare PULL loop: the same frames over TCP from another process, in turn.

The baseline receives each frame with recv_into and discards it. The node drains the socket, checks header, CRC32C
and MFP, builds MEPs of eight sources and copies each MFP to its place in a slot. Slots are freed once they are sealed.
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

from benchmarks.measure import Result, alternating_medians
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import BuilderLimits, Effect, SealSlot, SlotFreed, StartRun
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.node.malloc_tuning import keep_heap
from hltnode.daemon.readout.receiver import Receiver
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.frame_header import encode_frame

KIB = 1024
FRAME_BYTES = (64 * KIB, 256 * KIB, 4096 * KIB)
TOTAL_BYTES = 512 * KIB * KIB
SOURCES = range(4096, 4104)
EVENTS_PER_MEP = 64
RUN = 7
HWM = 8
RUNS = 9
SLOT_BYTES = 128 * KIB * KIB
MAX_MEP_BYTES = 40 * KIB * KIB


def make_frames(frame_bytes: int) -> list[bytes]:
    """Whole MEPs, source after source, about TOTAL_BYTES in all."""
    fragment = bytes(range(256)) * (frame_bytes // EVENTS_PER_MEP // 256 + 1)
    size = (frame_bytes - 512) // EVENTS_PER_MEP & ~7
    n_meps = TOTAL_BYTES // (frame_bytes * len(SOURCES))
    frames = []
    for mep in range(n_meps):
        for source in SOURCES:
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
    while True:
        n_frames = orders.recv()
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        with context.socket(zmq.PULL) as socket:
            socket.setsockopt(zmq.RCVHWM, HWM)
            socket.bind("tcp://127.0.0.1:*")
            orders.send(socket.getsockopt_string(zmq.LAST_ENDPOINT))
            for _ in SOURCES:
                socket.recv_into(buffer)
            begin = time.perf_counter()
            for _ in range(n_frames - len(SOURCES)):
                socket.recv_into(buffer)
            elapsed = time.perf_counter() - begin
        context.term()
        orders.send((n_frames - len(SOURCES)) / elapsed)


def receive_and_build(_frame_bytes: int, orders: Connection) -> None:
    """Node process: the same with the receiver and the event builder of the node."""
    keep_heap()
    buffers = [memoryview(bytearray(b"\1") * SLOT_BYTES) for _ in range(3)]
    while True:
        n_frames = orders.recv()
        orders.send(uvloop.run(receive_frames(orders, n_frames, buffers)))


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


def rate(sender: Peer, receiver: Peer, n_frames: int) -> float:
    """Frames per second of one pass of the sender to a receiver."""
    receiver.orders.send(n_frames)
    sender.orders.send(receiver.orders.recv())
    measured: float = receiver.orders.recv()
    return measured


def rates_in_turn(
    frame_bytes: int, first: Callable[[int, Connection], None], second: Callable[[int, Connection], None]
) -> tuple[float, float]:
    """Medians of the frames per second that two receivers take from one sender, in turn."""
    peers = [Peer(target, frame_bytes) for target in (send, first, second)]
    sender, *receivers = peers
    n_frames = sender.orders.recv()
    try:
        one, other = (partial(rate, sender, receiver, n_frames) for receiver in receivers)
        return alternating_medians(one, other, RUNS)
    finally:
        for peer in peers:
            peer.close()


async def receive_frames(
    orders: Connection,
    n_frames: int,
    buffers: list[memoryview],
    sealed: Callable[[EventBuilder, int], None] = lambda _builder, _slot: None,
) -> float:
    """Frames per second through receiver and builder; `sealed` is called with each slot before it is freed."""
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
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    begin = 0.0

    def carry_out(effects: Sequence[Effect]) -> None:
        nonlocal begin
        begin = begin or time.perf_counter()
        for effect in effects:
            if isinstance(effect, SealSlot):
                sealed(builder, effect.batch.slot)
                carry_out(builder.handle(time.monotonic_ns(), SlotFreed(effect.batch.slot)))
        if counters.fragments_received == n_frames and not done.done():
            done.set_result(time.perf_counter())

    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    receiver = Receiver(
        context, "tcp://127.0.0.1:*", builder, buffers, counters, carry_out, max_frame_bytes=16 << 20, hwm=HWM
    )
    builder.handle(0, StartRun(run=RUN, sources=tuple(SOURCES), first_mep=0, events_per_mep=EVENTS_PER_MEP))
    receiver.start(loop)
    orders.send(receiver.endpoint)
    first = len(SOURCES)  # the measurement starts with the first MEP that closes
    end: float = await done
    receiver.close()
    context.term()
    if counters.fragments_built != n_frames:
        raise RuntimeError(f"{counters.fragments_built} of {n_frames} fragments built: {counters}")
    return (n_frames - first) / (end - begin)


def run(_shared: Path) -> Iterator[Result]:
    """Measure each frame size, baseline and node in turn."""
    for frame_bytes in FRAME_BYTES:
        bare, node = rates_in_turn(frame_bytes, receive_bare, receive_and_build)
        gbits = node * frame_bytes * 8e-9
        yield Result(
            f"{frame_bytes // KIB} KiB frames ({gbits:.1f} Gbit/s)",
            node,
            "frames/s",
            f"bare PULL recv_into: {bare:,.0f} frames/s",
            node / bare,
            0.8,
        )
