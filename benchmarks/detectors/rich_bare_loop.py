"""The baseline of `rich_latency`: one C++ thread that receives datagrams, runs the kernels of a node and sends.

`python -m benchmarks.detectors.rich_bare_loop LIBRARY TRIGGER PACKETS EVENTS_PER_PACKET BATCHES` prints the port of its
UDP socket, then a JSON list: for each batch the milliseconds from its first packet to the end of the send of its
results. `python` only makes the memory of the batch and the parameters of the kernels (`rich_bare_loop.cpp`). The
kernels are those of a node: the same compiled library, and the same compiled lines. At the end, the back end of a node
computes the last batch again; results that differ are an error.
"""

import ctypes
import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hltnode.processing.framework.backends.cpu import CompiledPart, CpuBackend
from hltnode.processing.framework.backends.cpu_compiler import compiler
from hltnode.processing.framework.backends.interface import DeviceMemory, EventTables, Launch
from hltnode.processing.framework.batch import batch_header, event_flags, event_rows, mep_rows, mfp_rows
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Grid
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.na62.chain import CHAIN

SOURCE = Path(__file__).with_suffix(".cpp")
PROTOCOL = Path(__file__).parents[2] / "protocol"
PACKET_BYTES = 4096
"""Room of a packet, as `udp.max_datagram_bytes` of a node."""
RECEIVE_BYTES = 32 << 20
GRIDS = (Grid.ONE, Grid.ROWS, Grid.EVENTS, Grid.FRAGMENTS)


def compile_command(library: Path) -> list[str]:
    """The command that compiles the loop."""
    options = ("-std=c++17", "-O2", "-shared", "-fPIC", f"-I{PROCESSING}", f"-I{PROTOCOL}")
    return [compiler() or "c++", *options, str(SOURCE), "-o", str(library)]


class _Step(ctypes.Structure):
    _fields_ = (("kernel", ctypes.c_void_p), ("parameters", ctypes.c_void_p), ("grid", ctypes.c_uint32))


class _Pointer(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("place", "offsets")),
        *((name, ctypes.c_uint32) for name in ("step", "divisor", "per_event", "times")),
        *((name, ctypes.c_uint64) for name in ("memory", "stride")),
    )


_ARRAYS = ("header", "mfp_rows", "mep_rows", "event_rows", "event_flags", "input", "accepted", "lines")
_NUMBERS = ("n_steps", "n_pointers", "n_packets", "packet_bytes", "line_words")


class _Batch(ctypes.Structure):
    _fields_ = (
        ("steps", ctypes.POINTER(_Step)),
        ("pointers", ctypes.POINTER(_Pointer)),
        *((name, ctypes.c_void_p) for name in _ARRAYS),
        *((name, ctypes.c_uint32) for name in _NUMBERS),
    )


class _StepsOfBackend(CpuBackend):
    """A back end with one thread that tells what it runs."""

    def __init__(self) -> None:
        super().__init__(CHAIN.kernels, threads=1)
        self.steps: list[_Step] = []
        self.pointers: list[_Pointer] = []

    def _compiled_part(
        self,
        launches: tuple[Launch, ...],
        batch_header: DeviceMemory,
        thread_bytes: int,
        tables: EventTables | None,
        memory_of_threads: Sequence[DeviceMemory],
        threads: int,
    ) -> CompiledPart:
        for number, launch in enumerate(launches):
            if launch.grid not in GRIDS or self.steps[number:]:
                raise RuntimeError(f"the bare loop does not run the grid of {launch.kernel}, or a second program")
            parameters = launch.parameters.ctypes.data
            self.steps.append(_Step(self._address(launch), parameters, int(launch.grid)))
            for each in launch.thread_pointers:
                place, offset = each.placement, memory_of_threads[0].pointer + each.offset
                numbers = number, place.divisor, place.per_event, place.times
                self.pointers.append(_Pointer(parameters + each.position, place.offsets, *numbers, offset, each.stride))
        return super()._compiled_part(launches, batch_header, thread_bytes, tables, memory_of_threads, threads)


def _batch(backend: _StepsOfBackend, engine: Engine, workspace: Workspace, packets: int) -> _Batch:
    chain = engine.chain
    assert chain.accepted is not None
    assert chain.lines is not None
    columns = (batch_header, mfp_rows, mep_rows, event_rows, event_flags)
    arrays = [workspace.host_array(column.name).ctypes.data for column in columns]
    results = [workspace.host_array(column.name).ctypes.data for column in (chain.accepted, chain.lines)]
    steps, pointers = backend.steps, backend.pointers
    return _Batch(
        (_Step * len(steps))(*steps),
        (_Pointer * len(pointers))(*pointers),
        *arrays,
        workspace.input_data.ctypes.data,
        *results,
        *(len(steps), len(pointers), packets, PACKET_BYTES, engine.limits.line_words),
    )


def _check(workspace: Workspace) -> None:
    """Compute the last batch in the back end. Raises RuntimeError for other results."""
    of_loop = workspace.output.copy()
    workspace.host_array(event_flags.name)[: workspace.n_events] = 0
    workspace.submit()
    workspace.wait()
    again = workspace.output
    for name in ("accepted", "lines", "flags"):
        if not np.array_equal(getattr(of_loop, name), getattr(again, name)):
            raise RuntimeError(f"the bare loop has other {name} than the back end")
    if not again.accepted.any():
        raise RuntimeError("no event was accepted: the comparison says nothing")


def main(library: Path, trigger: Path | None, packets: int, events_per_packet: int, batches: int) -> list[float]:
    """Run the loop; returns the latencies in ms."""
    events = packets * events_per_packet
    backend = _StepsOfBackend()
    limits = BatchLimits(events=events, meps=packets, rows=packets, input_bytes=packets * PACKET_BYTES)
    configured = CHAIN.load_trigger(trigger)
    geometry = CHAIN.with_sequence(configured.sequence).load_geometry(None)
    engine = CHAIN.create_engine(backend, geometry, configured, limits, with_lists=False)
    workspace = engine.create_workspace()
    batch = _batch(backend, engine, workspace, packets)
    run = ctypes.CDLL(str(library)).bare_loop
    run.restype = ctypes.c_uint64
    run.argtypes = (ctypes.POINTER(_Batch), ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p)
    latencies = np.zeros(batches, np.int64)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
    ):
        data.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        data.bind(("127.0.0.1", 0))
        sink.bind(("127.0.0.1", 0))
        out.connect(sink.getsockname())
        print(data.getsockname()[1], flush=True)
        n = run(batch, data.fileno(), out.fileno(), batches, latencies.ctypes.data)
    _check(workspace)
    engine.close()
    return [float(each) for each in latencies[:n] * 1e-6]


if __name__ == "__main__":
    of_trigger = None if sys.argv[2] == "-" else Path(sys.argv[2])
    print(json.dumps(main(Path(sys.argv[1]), of_trigger, *map(int, sys.argv[3:6]))))
