"""Parts of an image: ranges of its rows."""

from hltnode.processing.framework.collections import U32, Collection, Placement, SharedTypes
from hltnode.processing.imaging.components.collections import runs

N_PARTS = 64
"""Parts of an image: more than a CPU usually has threads, and 8,192 rows are 128 for each."""

N_GROUPS = 8
"""Groups of adjacent parts: the borders inside of a group are joined by its thread, those between groups come last."""

part_types = SharedTypes(
    __file__, "part_types", sizes={"n_image_parts": N_PARTS, "parts_of_group": N_PARTS // N_GROUPS}
)

image_parts = Collection(
    "image_parts", capacity=lambda limits: limits.events * N_PARTS, placement=Placement.fixed(1), parts=N_PARTS
)
part_run_count = image_parts.per_part("run_count", U32)
part_first_run = image_parts.per_part("first_run", U32)
"""Number of the first run of each part in the event."""
part_root_count = image_parts.per_part("root_count", U32)
"""Components whose first run is in the part."""
part_first_component = image_parts.per_part("first_component", U32)
"""Number of the first of these components."""
part_threshold = image_parts.per_part("threshold", U32)
"""A pixel of 8 bits is foreground from this value on."""
part_reach = image_parts.per_part("reach", U32)
"""1 if corners of pixels touch, else 0."""

run_parent = runs.column("parent", U32)
"""A run of the same component with a smaller number, or the run itself; at the end the number of the component for the
first run of each component."""
