"""ccl_label_runs: the component of each run."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import (
    all_component_count,
    component_bound,
    component_count,
    row_runs,
    run_count,
    run_label,
    run_span,
)
from hltnode.processing.imaging.images.collections import image_row_count

label_runs = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(image_row_count, row_runs, run_count, run_span, component_bound),
    updates=(event_flags,),
    writes=(run_label, component_count, all_component_count),
    constants={"diagonal": 1},
)
"""diagonal: 0: pixels touch along edges (4-connected); any other number: also at corners (8-connected)."""
