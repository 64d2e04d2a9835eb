"""Receive and build against a bare PULL loop: the same frames over TCP from another process, in turn.

The baseline receives each frame with recv_into and throws it away. The node drains the socket, checks header, CRC32C
and MFP, builds MEPs of eight sources and copies each MFP to its place in a slot. Slots are freed once they are sealed.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop
import zmq

from benchmarks.measure import Result, alternating_medians
from hltnode.daemon.building import Effect, SealSlot, SlotFreed, StartRun
from hltnode.daemon.counters import Counters
from hltnode.daemon.event_builder import BuilderLimits, EventBuilder
from hltnode.daemon.receiver import Receiver
from hltnode.daemon.slots import SlotLimits, SlotPool
from hltnode.protocol.mfp import encode_mfp
from hltnode.protocol.transport import encode_frame

KIB = 1024
FRAME_BYTES = (64 * KIB, 256 * KIB, 4096 * KIB)
TOTAL_BYTES = 512 * KIB * KIB
SOURCES = range(4096, 4104)
EVENTS_PER_MEP = 64
RUN = 7
HWM = 8
RUNS = 7
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
    """Sender process: for each endpoint ordered, connect and send all frames once."""
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


class Sender:
    """The sender process and what it sends."""

    def __init__(self, frame_bytes: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._orders, theirs = spawn.Pipe()
        self._process = spawn.Process(target=send, args=(frame_bytes, theirs), daemon=True)
        self._process.start()
        self.frame_bytes = frame_bytes
        self.n_frames: int = self._orders.recv()

    def send_to(self, endpoint: str) -> None:
        self._orders.send(endpoint)

    def close(self) -> None:
        self._process.terminate()
        self._process.join()


def bare_rate(sender: Sender) -> float:
    """Frames per second of PULL with recv_into."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    buffer = bytearray(2 * sender.frame_bytes)
    with context.socket(zmq.PULL) as socket:
        socket.setsockopt(zmq.RCVHWM, HWM)
        socket.bind("tcp://127.0.0.1:*")
        sender.send_to(socket.getsockopt_string(zmq.LAST_ENDPOINT))
        socket.recv_into(buffer)
        begin = time.perf_counter()
        for _ in range(sender.n_frames - 1):
            socket.recv_into(buffer)
        elapsed = time.perf_counter() - begin
    context.term()
    return (sender.n_frames - 1) / elapsed


def node_rate(sender: Sender) -> float:
    """Frames per second of the receiver with the event builder behind it."""
    return uvloop.run(_receive_and_build(sender))


async def _receive_and_build(sender: Sender) -> float:
    limits = SlotLimits(input_bytes=SLOT_BYTES, events=1 << 16, meps=1024, fragments=1 << 16, mep_bytes=MAX_MEP_BYTES)
    pool = SlotPool(3, limits)
    counters = Counters()
    builder = EventBuilder(
        pool, BuilderLimits(mep_timeout_ns=10**10, flush_deadline_ns=10**8, closed_ring=1 << 16), counters
    )
    buffers = BUFFERS or [memoryview(bytearray(SLOT_BYTES)) for _ in range(3)]
    BUFFERS[:] = buffers
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    begin = 0.0

    def carry_out(effects: Sequence[Effect]) -> None:
        nonlocal begin
        begin = begin or time.perf_counter()
        for effect in effects:
            if isinstance(effect, SealSlot):
                carry_out(builder.handle(time.monotonic_ns(), SlotFreed(effect.slot)))
        if counters.fragments_received == sender.n_frames and not done.done():
            done.set_result(time.perf_counter())

    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    receiver = Receiver(
        context, "tcp://127.0.0.1:*", builder, buffers, counters, carry_out, max_frame_bytes=16 << 20, hwm=HWM
    )
    builder.handle(0, StartRun(run=RUN, sources=tuple(SOURCES), first_mep=0, events_per_mep=EVENTS_PER_MEP))
    receiver.start(loop)
    sender.send_to(receiver.endpoint)
    first = len(SOURCES)  # the clock starts with the first MEP that closes
    end: float = await done
    receiver.close()
    context.term()
    if counters.fragments_built != sender.n_frames:
        raise RuntimeError(f"{counters.fragments_built} of {sender.n_frames} fragments built: {counters}")
    return (sender.n_frames - first) / (end - begin)


BUFFERS: list[memoryview] = []


def run(_shared: Path) -> Iterator[Result]:
    """Measure each frame size, baseline and node in turn."""
    for frame_bytes in FRAME_BYTES:
        sender = Sender(frame_bytes)
        try:
            bare, node = alternating_medians(lambda s=sender: bare_rate(s), lambda s=sender: node_rate(s), RUNS)  # type: ignore[misc]
        finally:
            sender.close()
        gbits = node * frame_bytes * 8e-9
        yield Result(
            f"{frame_bytes // KIB} KiB frames ({gbits:.1f} Gbit/s)",
            node,
            "frames/s",
            f"bare PULL recv_into: {bare:,.0f} frames/s",
            node / bare,
            0.8,
        )
