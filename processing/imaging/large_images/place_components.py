"""ccl_place_components: the number of the first component of each part, and features without pixels."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import (
    all_component_count,
    component_bound,
    component_count,
    feature_columns,
)
from hltnode.processing.imaging.large_images.collections import part_first_component, part_root_count

place_components = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(part_root_count, component_bound),
    updates=(event_flags,),
    writes=(
        *(part_first_component, component_count, all_component_count),
        *feature_columns,
    ),
)
