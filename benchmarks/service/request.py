"""Time of a request: from the client's send to the answer of a node, beside a bare ROUTER that sends each message back.

The node is a separate process with the chain `raw`, whose kernels take about a microsecond for such an event; so the
time is that of the request socket, the batch and the answer. The echo is a process with a ROUTER socket of pyzmq. The
client asks both in turn, one request at a time, with the same bytes: one event of 16 boards of 64 bytes.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import zmq

from benchmarks.measure import Result
from benchmarks.readout.real_readout import MIB, process, status_of
from hltnode.client import Requester
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.protocol.raw_data.bank_types import USER_TYPES
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS, source_id
from hltnode.protocol.transport.requests import Request, encode_request

BOARDS, BOARD_BYTES = 16, 64
ROUNDS, REQUESTS = 20, 200
START_SECONDS = 120.0
TARGET_MS = 0.25
ECHO = """
import sys, zmq
socket = zmq.Context.instance().socket(zmq.ROUTER)
socket.bind(sys.argv[1])
while True:
    socket.send_multipart(socket.recv_multipart(copy=False), copy=False)
"""
NODE, BARE, ABOVE = "request, median", "echo, median", "request above echo, median of rounds"


def request_mep(events: int = 1) -> bytes:
    """One event of some boards."""
    return encode_mep(
        [
            encode_mfp(
                source_id=source_id(USER_SUBDETECTORS[0], board),
                event_id=1,
                version=1,
                types=[USER_TYPES[0]] * events,
                fragments=[bytes(BOARD_BYTES)] * events,
            )
            for board in range(BOARDS)
        ]
    )


def timed(ask: Callable[[], object]) -> list[float]:
    """Seconds of each of some calls."""
    times = []
    for _ in range(REQUESTS):
        begin = time.perf_counter()
        ask()
        times.append(time.perf_counter() - begin)
    return times


def run(_shared: Path) -> Iterator[Result]:
    """Yield the medians, the difference of the medians of each round, and the 99th percentiles."""
    with tempfile.TemporaryDirectory() as folder:
        data, control, decisions, http, requests, bare = free_ports(6)
        config = Path(folder) / "node.toml"
        config.write_text(f"""
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
max_frame_bytes = {MIB}
[builder]
max_mep_bytes = {MIB}
[pipeline]
slot_bytes = {MIB}
max_events = 16
backend = "cpu"
[requests]
endpoint = "tcp://127.0.0.1:{requests}"
[trigger]
chain = "raw"
[output]
directory = "{folder}/output"
[http]
port = {http}
""")
        mep = request_mep()
        echo = subprocess.Popen([sys.executable, "-c", ECHO, f"tcp://127.0.0.1:{bare}"])
        try:
            with process("serve", "--config", config) as node, Requester(f"tcp://127.0.0.1:{requests}") as requester:
                end = time.monotonic() + START_SECONDS
                while status_of(http) is None:
                    if node.poll() is not None or time.monotonic() > end:
                        raise RuntimeError("the node did not start")
                    time.sleep(0.2)
                socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
                socket.setsockopt(zmq.LINGER, 0)
                socket.connect(f"tcp://127.0.0.1:{bare}")

                def ask_echo() -> None:
                    socket.send_multipart([encode_request(Request(1, 0)), mep])
                    socket.recv_multipart()

                rounds = [(timed(lambda: requester.ask(mep)), timed(ask_echo)) for _ in range(ROUNDS + 1)][1:]
                socket.close()
        finally:
            echo.kill()
            echo.wait()
    yield from results(rounds)


def results(rounds: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Iterator[Result]:
    """The figures of rounds of times (s), of the node and of the echo."""
    of_node, of_echo = ([each for of_round in rounds for each in of_round[place]] for place in (0, 1))
    above = statistics.median(statistics.median(node) - statistics.median(echo) for node, echo in rounds) * 1e3
    yield Result(NODE, statistics.median(of_node) * 1e3, "ms", "echo", None)
    yield Result("request, 99th percentile", statistics.quantiles(of_node, n=100)[98] * 1e3, "ms", "echo", None)
    yield Result(BARE, statistics.median(of_echo) * 1e3, "ms", "", None)
    yield Result("echo, 99th percentile", statistics.quantiles(of_echo, n=100)[98] * 1e3, "ms", "", None)
    yield Result(ABOVE, above, "ms", f"target {TARGET_MS} ms", TARGET_MS / above if above > 0 else None, 1.0)


def summary(found: Sequence[Result]) -> dict[str, float]:
    """The main figure."""
    return {"request_ms": next(each.value for each in found if each.name == ABOVE)}
