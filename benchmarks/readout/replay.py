"""Cost of a replay: from files to MEPs to frames of all sources, sent to a node that accepts everything.

The events of the files are repeated, and every MEP is packed again.

Baseline: the same frames, already packed, copied in memory and sent one by one through a bare PUSH socket. Both send to
a process that only counts, and sends credits and acknowledgements like a node. The processor time covers the whole
sending process with its I/O threads, not the receiver.
"""

import asyncio
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop
import zmq
import zmq.asyncio

from benchmarks.lhcb.real_events import CHAIN, real_file
from benchmarks.measure import Comparison, Result, Stopwatch, Throughput, compare_in_turn
from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.client.sockets import FeederSockets
from hltnode.daemon.replay.made_ahead import made_ahead
from hltnode.daemon.replay.mep_source import MepStream, Packing, meps_of_files
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.transport.control_messages import decode_message, encode_message
from hltnode.protocol.transport.feeder_messages import Ack, Credit, Hello, Welcome

EVENTS = {100: 4000, 1000: 8000}
"""Number of sent events by MEP size; the largest MEPs give the figures in the JSON file."""
CREDIT = 3
RUNS = 5
MAX_FRAGMENT_BYTES = 16 << 20
# Targets: events per second and core, or the fraction of the bare copy.
TARGET_RATE = 15_000.0
TARGET_RATIO = 0.7


def receive(connection: Connection) -> None:
    """Receiver process: counts frames, welcomes feeders, acknowledges complete MEPs."""
    with zmq.Context() as context, context.socket(zmq.PULL) as data, context.socket(zmq.ROUTER) as control:
        data.bind("tcp://127.0.0.1:*")
        control.bind("tcp://127.0.0.1:*")
        connection.send([socket.getsockopt_string(zmq.LAST_ENDPOINT) for socket in (data, control)])
        frames: Counter[int] = Counter()
        hello: Hello | None = None
        identity = b""
        poller = zmq.Poller()
        poller.register(data, zmq.POLLIN)
        poller.register(control, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if control in ready:
                identity, raw = control.recv_multipart()
                message = decode_message(raw)
                if isinstance(message, Hello):
                    hello = message
                    for answer in (
                        Welcome("sink", "sink", hello.run, MAX_FRAGMENT_BYTES, 1),
                        Credit(hello.run, CREDIT),
                    ):
                        control.send_multipart([identity, encode_message(answer)])
            if data in ready:
                while data.poll(0):
                    frame = data.recv(copy=False)
                    if hello is None:
                        continue
                    mep = int.from_bytes(frame.buffer[16:24], "little")
                    frames[mep] += 1
                    if frames[mep] == len(hello.sources):
                        del frames[mep]
                        control.send_multipart([identity, encode_message(Ack(hello.run, ((mep, mep),)))])


def replay(stream: MepStream, data: str, control: str, name: str) -> Throughput:
    """The whole stream, packed and sent by a feeder."""

    async def feed() -> Throughput:
        identity = FeederIdentity(
            name=name,
            run=stream.run,
            sources=stream.sources,
            events_per_mep=stream.events_per_mep,
            max_fragment_bytes=MAX_FRAGMENT_BYTES,
        )
        with zmq.asyncio.Context() as context:
            async with Feeder(FeederSockets(context, data, control), identity) as feeder:
                while not feeder.is_connected:
                    await asyncio.sleep(0.01)
                watch = Stopwatch()
                report = await feed_meps(made_ahead(stream), [feeder])
                return watch.throughput(report.events)

    return uvloop.run(feed())


def copy_and_send(stream: MepStream, data: str) -> Throughput:
    """Copy and send the frames of the first MEP, once for each MEP of the stream."""
    mep = next(iter(stream))
    frames = [bytes(frame) for frame in mep.frames(stream.run, time.time_ns()).values()]
    assert stream.n_events is not None
    n_meps = stream.n_events // mep.n_events
    with zmq.Context() as context:
        watch = Stopwatch()
        with context.socket(zmq.PUSH) as socket:
            socket.setsockopt(zmq.SNDHWM, 64)
            socket.setsockopt(zmq.LINGER, 60_000)
            socket.connect(data)
            for _ in range(n_meps):
                for frame in frames:
                    socket.send(bytearray(frame), copy=False)
        context.term()
        return watch.throughput(n_meps * mep.n_events)


def compare(paths: list[Path], events_per_mep: int) -> tuple[MepStream, Comparison]:
    """Measure bare copy and replay in turn."""
    n_in_files = meps_of_files(paths, CHAIN.readout, Packing(events_per_mep=1, max_fragment_bytes=1 << 24)).n_events
    assert n_in_files is not None
    packing = Packing(
        events_per_mep=events_per_mep,
        max_fragment_bytes=MAX_FRAGMENT_BYTES,
        repeat=EVENTS[events_per_mep] // n_in_files,
    )
    stream = meps_of_files(paths, CHAIN.readout, packing)
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    receiver = spawn.Process(target=receive, args=(theirs,), daemon=True)
    receiver.start()
    data, control = ours.recv()
    try:
        return stream, compare_in_turn(
            partial(copy_and_send, stream, data), partial(replay, stream, data, control, "bench"), RUNS
        )
    finally:
        receiver.kill()
        receiver.join()


def run(shared: Path) -> Iterator[Result]:
    """Measure real events in MEPs of two sizes."""
    paths = [real_file(shared)]
    for events_per_mep in EVENTS:
        stream, found = compare(paths, events_per_mep)
        yield Result(
            f"{len(stream.sources)} sources, {events_per_mep} events per MEP, processor time",
            1e6 / found.second.cpu_us,
            "events/s of a core",
            f"copied and sent by a bare PUSH: {1e6 / found.first.cpu_us:,.0f} events/s",
            found.cpu_ratio,
            min(TARGET_RATIO, TARGET_RATE * found.first.cpu_us * 1e-6),
        )


def summary(results: list[Result]) -> dict[str, float | None]:
    """The figures of the largest MEPs."""
    return {"events_per_core_second": results[-1].value, "ratio": results[-1].ratio}
