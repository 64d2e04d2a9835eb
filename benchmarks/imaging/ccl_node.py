"""A node that labels images against its kernels alone: processor time of all threads for an image of 2048 x 2048 pixels
of 1 bit.

The node is a separate process on one thread with the default sequence and output; `hltnode replay`, another process,
feeds it over TCP. A line keeps 3 % of the images. Every component has features: with the default bound half of these
images would be flagged, and the node would write them to its error stream. The baseline runs the same images through
the same sequence in this process, before and after the node. The first and the last quarter of the images are not
measured.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from benchmarks.readout.node_beside_kernels import MeasuredNode, node_rows
from benchmarks.readout.real_readout import MIB
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
PER_MEP = len(DENSITIES)
LIMITS = BatchLimits(events=PER_MEP, input_bytes=8 * MIB)
TRIGGER = """[[lines]]
type = "Passthrough"
name = "Some"
prescale = 0.03

[sequence.ccl_place_images]
max_components = {bound}
"""


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
            fed = FED[granularity]
            node = MeasuredNode(
                chain=CHAIN.name,
                max_events=PER_MEP,
                trigger=f'file = "{trigger}"',
                feed=("replay", file, "--repeat", fed // PER_MEP, "--events-per-mep", PER_MEP),
                fed=fed,
            )
            turns = node.turns(alone, [mep], folder / str(granularity))
            yield from node_rows(f"g = {granularity}", "us/image", turns)


def prepare(granularity: int, trigger: Path) -> tuple[list[list[RawBank]], EncodedMep, ProfiledSequence]:
    """The banks of each image, their MEP, and the kernels alone. Writes the trigger configuration of both."""
    trigger.write_text(TRIGGER.format(bound=BOUNDS[granularity]))
    alone = ProfiledSequence(None, None, LIMITS, trigger=CHAIN.load_trigger(trigger), chain=CHAIN)
    images = [random_cells(SIDE, SIDE, density, granularity, (granularity,)) for density in DENSITIES]
    banks = [encode_image(image) for image in images]
    return banks, encode_mep(CHAIN, banks), alone
