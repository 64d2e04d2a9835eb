"""ccl_label_image: the runs of each image and their components; on the CPU by an algorithm that labels pixels."""

from hltnode.processing.framework.batch import event_flags, raw_input
from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.imaging.components.collections import (
    all_component_count,
    component_bound,
    component_count,
    row_runs,
    run_count,
    run_label,
    run_span,
    runs,
)
from hltnode.processing.imaging.components.find_runs import THRESHOLD
from hltnode.processing.imaging.cpu_labelling.collections import Method, pixels
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape

label_image = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(raw_input, image_shape, image_row_count, image_row_data, component_bound),
    updates=(event_flags,),
    writes=(row_runs, run_count, run_span, run_label, component_count, all_component_count),
    scratch=(Scratch("labels", U32, per=pixels), Scratch("parents", U32, per=runs)),
    constants={"threshold": THRESHOLD, "method": int(Method.ROSENFELD_DT)},
    allowed={"method": range(len(Method))},
)
"""threshold: as in ccl_find_runs. method: a Method; all of them are 8-connected and give the same components."""
