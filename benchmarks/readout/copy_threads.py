"""Cost of a queued frame for the event loop: with copy threads, against one thread that does everything.

The frames of a MEP are queued first, in this process, so neither a feeder nor TCP is measured. Then all frames are
read, checked and copied to their slots. The time of the event loop limits the rate of a node, with any number of
processors. Its processor time shows its own work even if the threads find no processor.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import zmq

from benchmarks.measure import Result
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

FIGURES = "copy_threads"
KIB = 1024
N_SOURCES = {64 * KIB: 512, 256 * KIB: 128, 4096 * KIB: 16}
THREADS = (1, 2, 4)
MEPS = 20
RUN = 7
EVENTS = 64
MEP_BYTES = 80 * KIB * KIB
SECOND = 10**9


class Readout:
    """A socket, a handler and a builder that frees slots when they are sealed."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], n_sources: int, copy_threads: int) -> None:
        slots = SlotLimits(input_bytes=MEP_BYTES, events=EVENTS, meps=1, fragments=n_sources, mep_bytes=MEP_BYTES)
        times = BuilderLimits(
            mep_timeout_ns=100 * SECOND,
            feeder_timeout_ns=100 * SECOND,
            overtaken_ns=SECOND,
            evict_ns=SECOND,
            flush_deadline_ns=SECOND,
            closed_ring=4096,
        )
        self.counters = Counters()
        self.builder = EventBuilder(SlotPool(2, slots), times, self.counters)
        handler = FrameHandler(
            self.builder,
            [np.ones(MEP_BYTES, np.uint8).data for _ in range(2)],
            self.counters,
            self.carry_out,
            lambda _token, _run, _source: None,
            SenderAnswers(),
            max_frame_bytes=16 << 20,
            clock=ReadingClock(time.monotonic_ns),
            copy_threads=copy_threads,
        )
        endpoint = f"inproc://data-{id(self)}"
        self.receiver = Receiver(context, endpoint, handler, max_frame_bytes=16 << 20, received=ReceivedInput())
        self.feeder: zmq.Socket[bytes] = context.socket(zmq.PUSH)
        self.feeder.setsockopt(zmq.SNDHWM, 0)
        self.feeder.connect(endpoint)
        self.builder.handle(0, StartRun(RUN, tuple(range(n_sources)), 0, EVENTS))
        self.receiver.start(asyncio.get_running_loop())

    def carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SealSlot):
                now_ns = time.monotonic_ns()
                self.carry_out(self.builder.handle(now_ns, SlotFreed(effect.batch.slot)))
                built = tuple(mep.mep for mep in effect.batch.meps)
                self.carry_out(self.builder.handle(now_ns, MepsAcknowledged(built)))

    def take(self, frames: Sequence[bytes]) -> tuple[float, float]:
        """Read a MEP; returns seconds and processor time of this thread per frame."""
        for frame in frames:
            # A copy: releasing the message then costs as much as for one from TCP.
            self.feeder.send(frame)
        built = self.counters.fragments_built
        began, cpu_began = time.perf_counter(), time.thread_time()
        while self.counters.fragments_built < built + len(frames):
            self.receiver.read()
        cpu, seconds = time.thread_time() - cpu_began, time.perf_counter() - began
        return seconds / len(frames), cpu / len(frames)

    def close(self) -> None:
        self.receiver.close()
        self.feeder.close()


def frames_of_a_mep(frame_bytes: int, n_sources: int, mep: int) -> list[bytes]:
    """Frames of all sources."""
    size = (frame_bytes - 512) // EVENTS & ~7
    content = (bytes(range(256)) * (size // 256 + 1))[:size]
    frames = []
    for source in range(n_sources):
        mfp = encode_mfp(
            source_id=source,
            event_id=mep * EVENTS,
            version=3,
            types=bytes([73]) * EVENTS,
            fragments=[content] * EVENTS,
        )
        frames.append(encode_frame(mfp, run=RUN, mep_id=mep, source_id=source))
    return frames


async def measure(frame_bytes: int) -> dict[int, tuple[float, float]]:
    """Median seconds and processor time per frame, by the number of threads."""
    n_sources = N_SOURCES[frame_bytes]
    with zmq.Context() as context:
        readouts = {threads: Readout(context, n_sources, threads) for threads in THREADS}
        found: dict[int, list[tuple[float, float]]] = {threads: [] for threads in THREADS}
        for mep in range(MEPS):
            frames = frames_of_a_mep(frame_bytes, n_sources, mep)
            for threads, readout in readouts.items():
                found[threads].append(readout.take(frames))
        for readout in readouts.values():
            readout.close()
    medians = {threads: np.median(np.array(taken[1:]), axis=0) for threads, taken in found.items()}
    return {threads: (float(times[0]), float(times[1])) for threads, times in medians.items()}


def run(_shared: Path) -> Iterator[Result]:
    """One thread and several threads in turn, for each frame size."""
    keep_heap()
    for frame_bytes in N_SOURCES:
        found = asyncio.run(measure(frame_bytes))
        seconds, cpu = found.pop(1)
        for threads, (with_threads, cpu_with_threads) in found.items():
            name = f"{frame_bytes // KIB} KiB frames, {threads} threads copy"
            one = "one thread: "
            yield Result(
                f"{name} ({frame_bytes * 8e-9 / with_threads:.0f} Gbit/s)",
                with_threads * 1e6,
                "µs/frame",
                f"{one}{seconds * 1e6:,.1f} µs/frame",
                seconds / with_threads,
            )
            yield Result(
                f"{name}, processor time of the loop",
                cpu_with_threads * 1e6,
                "µs/frame",
                f"{one}{cpu * 1e6:,.1f} µs/frame",
                cpu / cpu_with_threads,
            )
