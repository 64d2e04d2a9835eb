"""The chain `ccl`: connected components of images, each with its features."""

from pathlib import Path

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.imaging.components.collections import all_component_count, component_types
from hltnode.processing.imaging.components.find_runs import find_runs
from hltnode.processing.imaging.components.label_runs import label_runs
from hltnode.processing.imaging.components.measure_components import measure_components
from hltnode.processing.imaging.components.place_images import place_images
from hltnode.processing.imaging.images.assemble_rows import assemble_rows
from hltnode.processing.imaging.images.collections import image_types
from hltnode.processing.imaging.images.flags import image_flag_types
from hltnode.processing.imaging.images.read_headers import read_headers
from hltnode.processing.imaging.lines.histograms import IMAGE_HISTOGRAMS
from hltnode.processing.imaging.lines.inputs import EVENT_WORDS, INPUTS, USUAL_FIELDS
from hltnode.processing.imaging.lines.menu import IMAGE_MENU
from hltnode.processing.imaging.readout import IMAGE_READOUT
from hltnode.processing.imaging.strips import IMAGE_SUBDETECTORS
from hltnode.processing.selection.lines.line import selection_types
from hltnode.processing.selection.trigger_chain import TriggerChain

LARGEST_EVENT = 9 << 20
"""An image of 8192 x 8192 pixels of 1 bit, or 3000 x 3000 of 8. A larger one needs a node with larger slots."""

CHAIN = TriggerChain(
    name="ccl",
    sequence=AlgorithmSequence(
        (fragment_offsets, read_headers, place_images, assemble_rows, find_runs, label_runs, measure_components)
    ),
    kernels=KernelSources(
        "imaging/generated/chain_kernels.h", (PROCESSING,), "hltnode.processing.imaging._chain_kernels"
    ),
    source=Path(__file__),
    readout=IMAGE_READOUT,
    subdetectors=frozenset(IMAGE_SUBDETECTORS),
    counts={"components": all_component_count},
    types=(image_flag_types, image_types, component_types, selection_types),
    event_words=EVENT_WORDS,
    menu=IMAGE_MENU,
    histograms=IMAGE_HISTOGRAMS,
    inputs=INPUTS,
    usual_fields=USUAL_FIELDS,
    largest_event=LARGEST_EVENT,
    display="hltnode.processing.imaging.offline.display.picture",
)
