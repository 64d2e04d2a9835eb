"""Flags that this chain adds to those of the framework. All of them are errors, so that the events are kept."""

from hltnode.processing.framework.collections import SharedTypes
from hltnode.processing.framework.flags import ChainFlag

NO_IMAGE = ChainFlag(name="no_image", bit=16, text="The event has no usable strip.")
BAD_STRIP = ChainFlag(
    name="bad_strip",
    bit=17,
    text=(
        "A strip has width, rows or bits of zero, a size that its header does not announce, or rows outside of its "
        "image. The strip is not used."
    ),
)
STRIP_MISMATCH = ChainFlag(
    name="strip_mismatch",
    bit=18,
    text="A strip has another width, height or number of bits than the first strip of the image. It is not used.",
)
MISSING_ROWS = ChainFlag(
    name="missing_rows",
    bit=19,
    text=(
        "Rows of the image are in no strip. They count as background. If more than half of the rows are missing, the "
        "image is not labelled."
    ),
)
OVERLAPPING_STRIPS = ChainFlag(
    name="overlapping_strips",
    bit=20,
    text="A row of the image is in several strips. That of the lowest source id is used.",
)
IMAGE_TOO_LARGE = ChainFlag(
    name="image_too_large",
    bit=21,
    text="The image has more than 16384 rows or columns, or more pixels than the sequence labels. It is not labelled.",
)
TOO_MANY_COMPONENTS = ChainFlag(
    name="too_many_components",
    bit=22,
    text="The image has more components than an event holds. Their number is right; the last ones have no features.",
)
MISSING_PIXELS = ChainFlag(
    name="missing_pixels", bit=23, text="Pixels of a sparse image are in no bank. The others are labelled."
)
BAD_PIXELS = ChainFlag(
    name="bad_pixels",
    bit=24,
    text=(
        "A pixel of a sparse image lies outside of the image, or is twice in its list. It is left out. Or the banks "
        "have more pixels than they announce."
    ),
)
TOO_MANY_PIXELS = ChainFlag(
    name="too_many_pixels", bit=25, text="A sparse image has more than 65536 pixels. It is not labelled."
)

image_flag_types = SharedTypes(
    __file__,
    "image_flags",
    flags=(
        NO_IMAGE,
        BAD_STRIP,
        STRIP_MISMATCH,
        MISSING_ROWS,
        OVERLAPPING_STRIPS,
        IMAGE_TOO_LARGE,
        TOO_MANY_COMPONENTS,
        MISSING_PIXELS,
        BAD_PIXELS,
        TOO_MANY_PIXELS,
    ),
)
