"""Sparse images of the chain `ccl`: processor time for images of 768 x 256 pixels with 1 % foreground, one thread.

Every method of `sparse_images` against the dense sequence `whole_images` on the same images, features included. The
times that A. Hennequin published (thesis, table 4.6: one core of a Xeon Gold 6126 at 2.6 GHz) stand beside them.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.offline.simulation.shapes import random_cells
from hltnode.processing.imaging.pixel_lists import encode_pixels, pixels_of
from hltnode.processing.imaging.sparse_images.label_pixels import METHODS, label_pixels
from hltnode.processing.imaging.strips import encode_image
from hltnode.processing.selection.configuration.overrides import Override

WIDTH, HEIGHT, DENSITY, IMAGES = 768, 256, 0.01, 16
LIMITS = BatchLimits(events=IMAGES, input_bytes=1 << 20)
REPEAT = 50
TURNS = 5
TARGET = 10.0
"""Least speed of the row table relative to the dense sequence."""
PUBLISHED = {"row_table": 17.4, "ordered": 31.5, "super_pixels": 25.0, "flood_fill": 29.9}
"""Microseconds for an image; 303 to 320 with dense methods."""
OWN = "ccl_"
"""Kernels of the chain; lines and output lists are the same for both."""


def run(_: Path) -> Iterator[Result]:
    """A row for each method: the speed relative to the dense sequence in the same turn, median over the turns."""
    images = [random_cells(WIDTH, HEIGHT, DENSITY, 1, (number,)) for number in range(IMAGES)]
    dense = ProfiledSequence("whole_images", None, LIMITS, chain=CHAIN)
    strips = [encode_mep(CHAIN.with_sequence("whole_images"), [encode_image(image) for image in images])] * REPEAT
    lists = [encode_pixels(pixels_of(image), WIDTH, HEIGHT) for image in images]
    pixels = [encode_mep(CHAIN.with_sequence("sparse_images"), lists)] * REPEAT
    sparse = {
        name: ProfiledSequence(
            "sparse_images", None, LIMITS, overrides=(Override(label_pixels.name, "method", number),), chain=CHAIN
        )
        for name, number in METHODS.items()
    }
    turns = [
        (_own(dense, strips), {name: _own(sequence, pixels) for name, sequence in sparse.items()}) for _ in range(TURNS)
    ]
    yield Result("whole_images", float(np.median([of for of, _ in turns])), "us/image", "", None)
    for name in METHODS:
        microseconds = float(np.median([of[name] for _, of in turns]))
        ratio = float(np.median([of_dense / of[name] for of_dense, of in turns]))
        target = TARGET if name == "row_table" else None
        yield Result(f"{name} (published {PUBLISHED[name]} us)", microseconds, "us/image", "dense", ratio, target)


def sparse_ratio(results: Sequence[Result]) -> float | None:
    """The speed of the row table relative to the dense sequence."""
    return next((result.ratio for result in results if result.name.startswith("row_table")), None)


def _own(sequence: ProfiledSequence, meps: Sequence[EncodedMep]) -> float:
    taken = sequence.microseconds_per_kernel(meps)
    return sum(microseconds for kernel, microseconds in taken.items() if kernel.startswith(OWN))
