"""The chain `ccl`: connected components of images, each with its features."""

from pathlib import Path

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.output_lists import OutputList
from hltnode.processing.imaging.components.collections import all_component_count, component_types
from hltnode.processing.imaging.components.find_runs import find_runs
from hltnode.processing.imaging.components.label_runs import label_runs
from hltnode.processing.imaging.components.lists import FEATURES, ROWS, RUNS
from hltnode.processing.imaging.components.measure_components import measure_components
from hltnode.processing.imaging.components.place_images import place_images
from hltnode.processing.imaging.cpu_labelling.collections import labelling_types
from hltnode.processing.imaging.cpu_labelling.label_image import label_image
from hltnode.processing.imaging.gpu_labelling.collections import label_types
from hltnode.processing.imaging.gpu_labelling.sequences import GPU_SEQUENCES
from hltnode.processing.imaging.images.assemble_rows import assemble_rows
from hltnode.processing.imaging.images.collections import image_types, max_pixels
from hltnode.processing.imaging.images.flags import image_flag_types
from hltnode.processing.imaging.images.read_headers import read_headers
from hltnode.processing.imaging.large_images.collections import part_types
from hltnode.processing.imaging.large_images.count_runs import count_runs
from hltnode.processing.imaging.large_images.find_roots import find_roots
from hltnode.processing.imaging.large_images.join_borders import join_borders
from hltnode.processing.imaging.large_images.join_groups import join_groups
from hltnode.processing.imaging.large_images.join_runs import join_runs
from hltnode.processing.imaging.large_images.measure_parts import measure_parts
from hltnode.processing.imaging.large_images.number_roots import number_roots
from hltnode.processing.imaging.large_images.place_components import place_components
from hltnode.processing.imaging.large_images.place_runs import place_runs
from hltnode.processing.imaging.lines.histograms import IMAGE_HISTOGRAMS
from hltnode.processing.imaging.lines.inputs import EVENT_WORDS, INPUTS, USUAL_FIELDS
from hltnode.processing.imaging.lines.menu import IMAGE_MENU
from hltnode.processing.imaging.readout import IMAGE_READOUT
from hltnode.processing.imaging.sparse_images.collections import pixel_types
from hltnode.processing.imaging.sparse_images.label_pixels import label_pixels
from hltnode.processing.imaging.sparse_images.place_pixels import place_pixels
from hltnode.processing.imaging.sparse_images.read_pixel_headers import read_pixel_headers
from hltnode.processing.imaging.strips import IMAGE_SUBDETECTORS
from hltnode.processing.selection.lines.line import selection_types
from hltnode.processing.selection.trigger_chain import Sequence, TriggerChain


def _largest_event(limits: BatchLimits) -> int:
    """The most pixels of 1 bit that are labelled, with room for headers; an eighth of them of 8 bits."""
    return max_pixels(limits) // 8 + (1 << 20)


_IMAGES = (read_headers, place_images, assemble_rows)
_COUNTS = {"components": all_component_count}


def _sequence(*steps: Algorithm, labels: tuple[OutputList, ...] = ()) -> Sequence:
    algorithms = AlgorithmSequence((fragment_offsets, *steps))
    return Sequence(
        algorithms=algorithms, subdetectors=frozenset(IMAGE_SUBDETECTORS), counts=_COUNTS, lists=(FEATURES, *labels)
    )


SEQUENCES = {
    "whole_images": _sequence(*_IMAGES, find_runs, label_runs, measure_components),
    "labelled_images": _sequence(*_IMAGES, find_runs, label_runs, measure_components, labels=(ROWS, RUNS)),
    "large_images": _sequence(
        *_IMAGES,
        *(count_runs, place_runs, join_runs, join_borders, join_groups),
        *(find_roots, place_components, number_roots, measure_parts),
    ),
    "cpu_labelling": _sequence(*_IMAGES, label_image, measure_components),
    "sparse_images": _sequence(read_pixel_headers, place_pixels, label_pixels),
    **{name: _sequence(*_IMAGES, *labelling) for name, labelling in GPU_SEQUENCES.items()},
}
"""whole_images: one thread, or one block of a GPU, for each image. labelled_images: the same, and the labels as lists.
large_images: all threads or blocks for one image; the same components with the same features. cpu_labelling: published
algorithms for a CPU, to compare with. sparse_images: images as lists of their foreground pixels. The others: labelling
algorithms for GPUs."""

CHAIN = TriggerChain.offering(
    SEQUENCES,
    "whole_images",
    name="ccl",
    kernels=KernelSources(
        "imaging/generated/chain_kernels.h", (PROCESSING,), "hltnode.processing.imaging._chain_kernels"
    ),
    source=Path(__file__),
    readout=IMAGE_READOUT,
    types=(
        *(image_flag_types, image_types, component_types, labelling_types, part_types, label_types, pixel_types),
        selection_types,
    ),
    event_words=EVENT_WORDS,
    menu=IMAGE_MENU,
    histograms=IMAGE_HISTOGRAMS,
    inputs=INPUTS,
    usual_fields=USUAL_FIELDS,
    largest_event=_largest_event,
    display="hltnode.processing.imaging.offline.display.picture",
)
