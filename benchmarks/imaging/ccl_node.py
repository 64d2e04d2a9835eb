"""A node that labels images against its kernels alone: processor time of all threads for an image of 2048 x 2048 pixels
of 1 bit.

The node is a separate process on one thread with the default sequence and output; `hltnode replay`, another process,
feeds it over TCP. A line keeps 3 % of the images. Every component has features: with the default bound half of these
images would be flagged, and the node would write them to its error stream. The baseline runs the same images through
the same sequence in this process, before and after the node. The first and the last quarter of the images are not
measured.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from benchmarks.readout.real_readout import (
    AFTER_START_SECONDS,
    MIB,
    process,
    seconds_by_kind,
    wait_until_it_runs,
    when_processed,
)
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.offline.simulation.shapes import random_cells
from hltnode.processing.imaging.strips import encode_image
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_bank

SIDE = 2048
DENSITIES = tuple(percent / 100 for percent in range(10, 90, 10))
GRANULARITIES = (1, 4)
FED = {1: 240, 4: 960}
"""Number of images by granularity; cells of 4 pixels take a quarter of the time."""
BOUNDS = {1: 310_000, 4: 20_000}
"""Components with features: at most 301,376 and 18,939 in these images."""
RUNS = 2
TARGET = 1.25
"""Most processor time of a node relative to its kernels."""
PER_MEP = len(DENSITIES)
LIMITS = BatchLimits(events=PER_MEP, input_bytes=8 * MIB)
TRIGGER = """[[lines]]
type = "Passthrough"
name = "Some"
prescale = 0.03

[sequence.ccl_place_images]
max_components = {bound}
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """Processor time for an image in microseconds: of the kernels alone, and of the node by kind of thread."""

    kernels: float
    node: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """Time of the node / that of the kernels."""
        return sum(self.node.values()) / self.kernels


def run() -> Iterator[Result]:
    """A row for each granularity: medians over the runs; the ratio is target / measured, and 1 reaches the target."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for granularity in GRANULARITIES:
            trigger = folder / f"{granularity}.toml"
            banks, mep, alone = prepare(granularity, trigger)
            file = folder / f"{granularity}.mdf"
            with file.open("wb") as written:
                for of_image in banks:
                    written.write(encode_record(b"".join(map(encode_bank, of_image)), run=1, checksum=False))
            turns = []
            for turn in range(RUNS):
                before = _kernels_us(alone, mep)
                node = _node_us(folder, f"{granularity}_{turn}", file, trigger, FED[granularity])
                turns.append(Turn((before + _kernels_us(alone, mep)) / 2, node))
            yield from results(granularity, turns)


def prepare(granularity: int, trigger: Path) -> tuple[list[list[RawBank]], EncodedMep, ProfiledSequence]:
    """The banks of each image, their MEP, and the kernels alone. Writes the trigger configuration of both."""
    trigger.write_text(TRIGGER.format(bound=BOUNDS[granularity]))
    alone = ProfiledSequence(None, None, LIMITS, trigger=CHAIN.load_trigger(trigger), chain=CHAIN)
    images = [random_cells(SIDE, SIDE, density, granularity, (granularity,)) for density in DENSITIES]
    banks = [encode_image(image) for image in images]
    return banks, encode_mep(CHAIN, banks), alone


def results(granularity: int, turns: Sequence[Turn]) -> Iterator[Result]:
    """The rows of one granularity."""
    kernels = statistics.median(turn.kernels for turn in turns)
    whole = statistics.median(sum(turn.node.values()) for turn in turns)
    ratio = statistics.median(turn.ratio for turn in turns)
    baseline = f"kernels alone: {kernels:,.0f} us"
    yield Result(f"node, g = {granularity}", whole, "us/image", baseline, TARGET / ratio, 1.0)
    for kind in turns[0].node:
        used = statistics.median(turn.node[kind] for turn in turns)
        yield Result(f"  {kind}", used, "us/image", baseline, None)


def node_ratio(found: Sequence[Result]) -> float | None:
    """Time of the node / that of its kernels, for the worst granularity; None without a measurement."""
    ratios = [TARGET / row.ratio for row in found if row.name.startswith("node, ") and row.ratio]
    return max(ratios, default=None)


def _kernels_us(alone: ProfiledSequence, mep: EncodedMep) -> float:
    return statistics.median(alone.throughput([mep] * 4).cpu_us for _ in range(3))


def _node_us(folder: Path, name: str, images: Path, trigger: Path, fed: int) -> dict[str, float]:
    """Processor time of a node for an image, by kind of thread (us)."""
    data, control, decisions, http = free_ports(4)
    (folder / name).mkdir()
    config = folder / name / "node.toml"
    config.write_text(f"""
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
[builder]
mep_timeout_ms = 60000
feeder_timeout_ms = 60000
max_mep_bytes = {16 * MIB}
[pipeline]
slots = 3
slot_bytes = {16 * MIB}
max_events = {PER_MEP}
backend = "cpu"
threads = 1
[trigger]
chain = "ccl"
file = "{trigger}"
[output]
directory = "{folder / name / "output"}"
[http]
port = {http}
""")
    to = ("--to", f"tcp://127.0.0.1:{data}", "--control", f"tcp://127.0.0.1:{control}", "--chain", "ccl")
    repeat = fed // PER_MEP
    with process("serve", "--config", config) as node:
        wait_until_it_runs(node, http)
        time.sleep(AFTER_START_SECONDS)
        with process("replay", images, *to, "--repeat", repeat, "--events-per-mep", PER_MEP) as feeder:
            before = when_processed(http, node, feeder, fed // 4)
            after = when_processed(http, node, feeder, fed * 3 // 4)
    used = seconds_by_kind(node.pid, before[1], after[1])
    return {kind: seconds / (after[0] - before[0]) * 1e6 for kind, seconds in used.items()}
