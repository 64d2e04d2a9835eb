"""The baseline of `latency`: one plain thread that receives the fragments of a MEP, runs the same kernels and sends.

`python -m benchmarks.service.bare_loop EVENTS GEOMETRY TRIGGER EVENTS_PER_SECOND SECONDS` prints a JSON list: for
each MEP the milliseconds from its first fragment to its decision. A second process sends each MFP as a message on a
PUSH socket, at a steady rate. The loop copies it to its place in the batch; with the last one it seals the batch,
waits for the kernels (as many threads as a node has) and sends the results on a PUB socket. It checks nothing,
promises nothing and keeps nothing.
"""

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import zmq

from benchmarks.lhcb.real_events import CHAIN
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.limits import BatchLimits

EVENTS_PER_MEP = 64
INPUT_BYTES = 16 << 20
ALIGNMENT = 8
WARM_UP_MEPS = 20


def mfps_of(events: Path) -> list[dict[int, bytes]]:
    """The MFPs of each whole MEP of a file, by source."""
    packing = Packing(events_per_mep=EVENTS_PER_MEP, max_fragment_bytes=1 << 20, run=1)
    meps = meps_of_files([events], CHAIN.readout, packing)
    return [{source: bytes(mfp) for source, mfp in mep.mfps.items()} for mep in meps if mep.n_events == EVENTS_PER_MEP]


def send(endpoint: str, mfps: Sequence[dict[int, bytes]], period_s: float, n_meps: int) -> None:
    """Sender process: one MEP each period."""
    context = zmq.Context()
    with context.socket(zmq.PUSH) as socket:
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.connect(endpoint)
        due = time.monotonic() + 1.0
        for number in range(n_meps):
            time.sleep(max(0.0, due - time.monotonic()))
            due += period_s
            for mfp in mfps[number % len(mfps)].values():
                socket.send(mfp, copy=False)
    context.term()


def latencies(events: Path, geometry: Path, trigger: Path, per_second: float, seconds: float) -> list[float]:
    """Milliseconds from the first fragment of each MEP to its decision."""
    mfps = mfps_of(events)
    sources = list(mfps[0])
    limits = BatchLimits(events=EVENTS_PER_MEP, meps=1, input_bytes=INPUT_BYTES, rows=len(sources))
    backend = CpuBackend(CHAIN.kernels, threads=len(os.sched_getaffinity(0)))
    configured = CHAIN.load_trigger(trigger)
    engine = CHAIN.create_engine(
        backend, CHAIN.with_sequence("velo").load_geometry(geometry), configured, limits, with_lists=False
    )
    workspace = engine.create_workspace()
    n_meps = WARM_UP_MEPS + int(seconds * per_second / EVENTS_PER_MEP)
    context = zmq.Context()
    data, decisions = context.socket(zmq.PULL), context.socket(zmq.PUB)
    data.setsockopt(zmq.RCVHWM, 0)
    endpoint = f"tcp://127.0.0.1:{data.bind_to_random_port('tcp://127.0.0.1')}"
    decisions.bind_to_random_port("tcp://127.0.0.1")
    sender = multiprocessing.get_context("spawn").Process(
        target=send, args=(endpoint, mfps, EVENTS_PER_MEP / per_second, n_meps)
    )
    sender.start()
    found, places = [], np.zeros((len(sources), 3), np.int64)
    for _ in range(n_meps):
        end = 0
        for row, source in enumerate(sources):
            mfp = data.recv()
            if row == 0:
                first = time.monotonic_ns()
            workspace.input_data[end : end + len(mfp)] = np.frombuffer(mfp, np.uint8)
            places[row] = source, end, len(mfp)
            end += -(-len(mfp) // ALIGNMENT) * ALIGNMENT
        workspace.seal([MepInBatch(EVENTS_PER_MEP, places)])
        workspace.submit()
        workspace.wait()
        output = workspace.output
        decisions.send(output.accepted.tobytes() + output.lines.tobytes() + output.flags.tobytes())
        found.append((time.monotonic_ns() - first) * 1e-6)
    sender.join()
    context.destroy(linger=0)
    engine.close()
    return found[WARM_UP_MEPS:]


if __name__ == "__main__":
    of_events, of_geometry, of_trigger = map(Path, sys.argv[1:4])
    print(json.dumps(latencies(of_events, of_geometry, of_trigger, float(sys.argv[4]), float(sys.argv[5]))))
