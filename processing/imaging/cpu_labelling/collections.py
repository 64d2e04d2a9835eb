"""The pixels of each image, for algorithms that label pixels, and the names of these algorithms."""

from enum import IntEnum

from hltnode.processing.framework.collections import Collection, Placement, SharedTypes
from hltnode.processing.imaging.components.collections import run_offset
from hltnode.processing.imaging.images.collections import max_pixels

# An image without missing rows has places for at least half as many runs as it has pixels.
pixels = Collection(
    "pixels",
    capacity=lambda limits: 8 * limits.input_bytes,
    placement=Placement(offsets=run_offset, times=2),
    max_per_event=max_pixels,
)
"""The pixels of an image, row by row. 4 bytes for each are memory of a thread."""


class Method(IntEnum):
    """How a CPU labels pixels; the numbers are values of a constant."""

    ROSENFELD = 0
    ROSENFELD_DT = 1
    LSL_STD = 2
    LSL_RLE = 3
    FLOOD_FILL = 4
    SIMD_V1_128 = 5
    SIMD_V1_256 = 6
    SIMD_V1_512 = 7
    SIMD_V2_128 = 8
    SIMD_V2_256 = 9
    SIMD_V2_512 = 10


labelling_types = SharedTypes(
    __file__, "labelling_types", sizes={f"method_{method.name.lower()}": int(method) for method in Method}
)
