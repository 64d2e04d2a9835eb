"""The UDP intake: the cost of a packet beside a bare `recvmmsg` loop, and the events that a whole node decides.

A generator in C sends packets of 1,168 bytes with 16 events, as NA62's boards do, at 100,000 packets/s. The bare loop
is a program in C that receives the same packets and does nothing. Both receive in turn; the ratio compares packets per
second of processor time. The intake is measured in its receiving thread: system calls, checks, and the copy into MEPs.
The hand-over to the event loop (arrays, CRC) is a row of its own.

The whole node is `hltnode serve` with the chain `na62_rich`, fitting single rings, on all cores of the machine, which
the generator uses, too. Its events per second are those of its processor time: decided events by the processor seconds
of all its threads, times two for two cores.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.measure import Result
from benchmarks.readout.real_readout import MIB, cpu_seconds, process, status_of
from hltnode.daemon._native import FragmentIntake, OpenMeps, Outcome, SenderAnswers, SourceTable, UdpIntake
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.processing.na62.offline.simulation.decays import Decay
from hltnode.processing.na62.offline.simulation.events import Conditions, simulated_event
from hltnode.protocol.na62.rich_banks import MAX_HITS, RICH_SOURCE, RichBankType, encode_hits
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.udp_datagram import NO_FLAGS, DatagramFlags, encode_datagram

PACKET_BYTES, EVENTS_PER_PACKET, PACKETS_PER_MEP = 1168, 16, 64
PACKETS, RATE, TURNS = 200_000, 100_000, 3
RECEIVE_BYTES = 32 * MIB
BURST_PACKETS = 64 * PACKETS_PER_MEP
NODE_SECONDS, NODE_RATE, NODE_PACKETS_PER_MEP = 10.0, 20_000, 256
# The default menu writes a third of the events to files.
TRIGGER = """
[sequence]
name = "single_ring"
[[lines]]
type = "Passthrough"
name = "RichSample"
prescale = 0.01
"""
START_SECONDS = 120.0
TARGET_RECEIVE, TARGET_EVENTS = 0.8, 1e6
RECEIVE, EVENTS = "packets of the intake per processor second", "events of a node, two cores"


class Cost(NamedTuple):
    """Received packets, and microseconds of processor time of each in the receiving thread and in the hand-over."""

    packets: int
    receive_us: float
    hand_over_us: float = 0.0


def run(_: Path) -> Iterator[Result]:
    """Rows of packets and events per second; ratios are medians over turns in which both sides ran."""
    with tempfile.TemporaryDirectory(prefix="hltnode-udp-") as scratch:
        folder = Path(scratch)
        generator, bare = (compiled(name, folder) for name in ("udp_generator", "udp_bare_receiver"))
        packets = write_burst(folder / "packets", [PACKET_BYTES] * BURST_PACKETS)
        turns = [(bare_cost(bare, generator, packets), intake_cost(generator, packets)) for _ in range(TURNS)]
        ratio = statistics.median(one.receive_us / other.receive_us for one, other in turns)
        yield Result("packets of the bare loop per processor second", 1e6 / _median(t[0].receive_us for t in turns),
                     "1/s", "", None)  # fmt: skip
        yield Result(RECEIVE, 1e6 / _median(t[1].receive_us for t in turns), "1/s", "bare loop", ratio, TARGET_RECEIVE)
        yield Result("hand-over of a packet", 1e3 * _median(t[1].hand_over_us for t in turns), "ns", "", None)
        events = rich_burst(folder / "events", Conditions(decay=Decay.TRACKS, rings=1))
        per_second, lost = node_events_per_second(folder, generator, events)
        yield Result(EVENTS, per_second, "1/s", "1 M events/s", per_second / TARGET_EVENTS, 1.0)
        yield Result("lost events", 100 * lost, "%", "", None)


def summary(results: Sequence[Result]) -> dict[str, float | None]:
    """The main figures."""
    by_name = {result.name: result for result in results}
    return {"receive_ratio": by_name[RECEIVE].ratio, "events_per_second": by_name[EVENTS].value}


def _median(values: Iterator[float]) -> float:
    return statistics.median(values)


def compiled(name: str, folder: Path) -> Path:
    """A program of this folder."""
    compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
    program = folder / name
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run([*compiler.split(), "-std=c11", "-O2", str(source), "-o", str(program)], check=True)
    return program


def write_burst(path: Path, sizes: Sequence[int]) -> Path:
    """Packets of these sizes for the generator: 16 banks, all of one size but the last one."""
    datagrams = []
    for sequence, size in enumerate(sizes):
        banks = size - 32 - 68
        each = banks // EVENTS_PER_PACKET // 4 * 4
        payloads = [bytes(each)] * (EVENTS_PER_PACKET - 1) + [bytes(banks - each * (EVENTS_PER_PACKET - 1))]
        datagrams.append(_datagram(sequence, len(sizes), payloads))
    assert {len(datagram) for datagram in datagrams} == set(sizes)
    return _written(path, datagrams)


def rich_burst(path: Path, conditions: Conditions, n_packets: int = BURST_PACKETS) -> Path:
    """Packets of simulated events."""
    rng = np.random.default_rng(1)
    made = [encode_hits(simulated_event(rng, conditions)[0][:MAX_HITS]) for _ in range(4096)]
    datagrams = []
    for sequence in range(n_packets):
        first = sequence * EVENTS_PER_PACKET
        datagrams.append(
            _datagram(sequence, n_packets, [made[(first + i) % len(made)] for i in range(EVENTS_PER_PACKET)])
        )
    return _written(path, datagrams)


def _datagram(sequence: int, n: int, payloads: Sequence[bytes]) -> bytes:
    flags = DatagramFlags.START_OF_BURST if sequence == 0 else NO_FLAGS
    flags |= DatagramFlags.END_OF_BURST if sequence == n - 1 else NO_FLAGS
    mfp = encode_mfp(
        source_id=RICH_SOURCE,
        event_id=sequence * EVENTS_PER_PACKET,
        version=1,
        types=[RichBankType.HITS] * len(payloads),
        fragments=payloads,
        align=2,
    )
    return encode_datagram(mfp, run=1, burst=1, sequence=sequence, source=RICH_SOURCE, flags=flags)


def _written(path: Path, datagrams: Sequence[bytes]) -> Path:
    path.write_bytes(b"".join(len(each).to_bytes(4, "little") + each for each in datagrams))
    return path


def _generate(generator: Path, packets: Path, port: int, rate: float, n: int) -> None:
    subprocess.run(
        [generator, packets, "127.0.0.1", str(port), str(rate), str(n)], check=True, stdout=subprocess.DEVNULL
    )


def bare_cost(bare: Path, generator: Path, packets: Path) -> Cost:
    """The cost of the bare loop."""
    command = [str(bare), str(PACKET_BYTES), str(RECEIVE_BYTES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdin is not None
        _generate(generator, packets, int(receiver.stdout.readline()), RATE, PACKETS)
        receiver.stdin.close()
        n, seconds = receiver.stdout.read().split()
    return Cost(int(n), float(seconds) / int(n) * 1e6)


def intake_cost(generator: Path, packets: Path) -> Cost:
    """The cost of the intake: the processor time of its thread, and of the hand-over in this thread."""
    slot = np.zeros(1024, np.uint8)
    fragments = FragmentIntake(OpenMeps(1, 1024), SenderAnswers(), SourceTable(), [slot.data], MIB)
    intake = UdpIntake(
        fragments, "127.0.0.1", 0, n_sockets=1, receive_bytes=RECEIVE_BYTES, packets_per_mep=PACKETS_PER_MEP,
        events_per_packet=EVENTS_PER_PACKET, open_meps=32, datagram_bytes=PACKET_BYTES, flush_ns=100_000_000,
        sources=[RICH_SOURCE], senders=[("127.0.0.1", [RICH_SOURCE])],
    )  # fmt: skip
    before = _threads()
    intake.start()
    [thread] = _threads() - before
    sending = threading.Thread(target=_generate, args=(generator, packets, intake.port, RATE, PACKETS))
    sending.start()
    begin = time.thread_time()
    quiet_since = time.monotonic()
    while sending.is_alive() or time.monotonic() - quiet_since < 0.3:
        outcome = intake.receive(0, 0, 1 << 62, 1)
        if outcome is Outcome.LEFT:
            # No run has started here: the event builder of a node would place the frame.
            intake.left_frame()
            quiet_since = time.monotonic()
        elif outcome is Outcome.EMPTY:
            time.sleep(0.002)
    hand_over = time.thread_time() - begin
    receiving = int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0]) * 1e-9
    n = intake.counts()["packets"]
    intake.stop()
    return Cost(n, receiving / n * 1e6, hand_over / n * 1e6)


def _threads() -> set[int]:
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}


def node_events_per_second(folder: Path, generator: Path, events: Path) -> tuple[float, float]:
    """Decided events per second of processor time on two cores, and the part of the sent events that were not decided.

    Raises RuntimeError if the node does not start or answer.
    """
    data, control, decisions, http, port = free_ports(5)
    trigger, config = folder / "trigger.toml", folder / "node.toml"
    trigger.write_text(TRIGGER)
    config.write_text(f"""
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
max_frame_bytes = {2 * MIB}
[udp]
endpoint = "udp://127.0.0.1:{port}"
receive_bytes = {RECEIVE_BYTES}
packets_per_mep = {NODE_PACKETS_PER_MEP}
flush_us = 100000
[[udp.senders]]
address = "127.0.0.1"
sources = [{RICH_SOURCE}]
[builder]
max_mep_bytes = {2 * MIB}
[pipeline]
max_events = 4096
slot_bytes = {32 * MIB}
backend = "cpu"
[trigger]
chain = "na62_rich"
file = "{trigger}"
[output]
directory = "{folder / "output"}"
[http]
port = {http}
""")
    with process("serve", "--config", config) as node:
        end = time.monotonic() + START_SECONDS
        while (status := status_of(http)) is None or status["state"] != "running":
            if node.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the node did not start")
            time.sleep(0.2)
        # Warm-up: the run begins, and all pages are touched.
        _generate(generator, events, port, NODE_RATE, BURST_PACKETS)
        time.sleep(1.0)
        before, used = _processed(http), cpu_seconds(node.pid)
        n = int(NODE_SECONDS * NODE_RATE)
        _generate(generator, events, port, NODE_RATE, n)
        time.sleep(1.0)
        decided, used = _processed(http) - before, cpu_seconds(node.pid) - used
    return 2 * decided / used, 1 - decided / (n * EVENTS_PER_PACKET)


def _processed(http: int) -> int:
    status = status_of(http)
    if status is None:
        raise RuntimeError("the node does not answer")
    return int(status["events"]["processed"])
