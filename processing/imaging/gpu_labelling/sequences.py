"""The labelling algorithms for GPUs as sequences: algorithms after the assembly of images."""

from collections.abc import Mapping

from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.imaging.gpu_labelling.features.collect_features import collect_features
from hltnode.processing.imaging.gpu_labelling.features.measure_intensities import measure_intensities
from hltnode.processing.imaging.gpu_labelling.flsl.flsl_label import flsl_label
from hltnode.processing.imaging.gpu_labelling.flsl.flsl_measure import flsl_measure
from hltnode.processing.imaging.gpu_labelling.flsl.flsl_measure_cd import flsl_measure_cd
from hltnode.processing.imaging.gpu_labelling.flsl.flsl_merge import flsl_merge
from hltnode.processing.imaging.gpu_labelling.flsl.flsl_otf_label import flsl_otf_label
from hltnode.processing.imaging.gpu_labelling.flsl.flsl_otf_merge import flsl_otf_merge
from hltnode.processing.imaging.gpu_labelling.ha4_32.ha4_32_label import ha4_32_label
from hltnode.processing.imaging.gpu_labelling.ha4_32.ha4_32_measure import ha4_32_measure
from hltnode.processing.imaging.gpu_labelling.ha4_32.ha4_32_measure_cd import ha4_32_measure_cd
from hltnode.processing.imaging.gpu_labelling.ha4_32.ha4_32_merge import ha4_32_merge
from hltnode.processing.imaging.gpu_labelling.ha4_32.ha4_32_otf_label import ha4_32_otf_label
from hltnode.processing.imaging.gpu_labelling.ha4_32.ha4_32_otf_merge import ha4_32_otf_merge
from hltnode.processing.imaging.gpu_labelling.ha4_64.ha4_64_label import ha4_64_label
from hltnode.processing.imaging.gpu_labelling.ha4_64.ha4_64_measure import ha4_64_measure
from hltnode.processing.imaging.gpu_labelling.ha4_64.ha4_64_measure_cd import ha4_64_measure_cd
from hltnode.processing.imaging.gpu_labelling.ha4_64.ha4_64_merge import ha4_64_merge
from hltnode.processing.imaging.gpu_labelling.ha4_64.ha4_otf_label import ha4_otf_label
from hltnode.processing.imaging.gpu_labelling.ha4_64.ha4_otf_merge import ha4_otf_merge
from hltnode.processing.imaging.gpu_labelling.labels.count_labels import count_labels
from hltnode.processing.imaging.gpu_labelling.labels.number_labels import number_labels
from hltnode.processing.imaging.gpu_labelling.labels.place_labels import place_labels
from hltnode.processing.imaging.gpu_labelling.pixelwise.measure_pixels import measure_pixels
from hltnode.processing.imaging.gpu_labelling.pixelwise.merge_pixels import merge_pixels
from hltnode.processing.imaging.gpu_labelling.pixelwise.naive_label import naive_label
from hltnode.processing.imaging.gpu_labelling.pixelwise.playne_label import playne_label
from hltnode.processing.imaging.large_images.place_components import place_components
from hltnode.processing.imaging.large_images.place_runs import place_runs


def _sequence(label: Algorithm, merge: Algorithm, *measure: Algorithm) -> tuple[Algorithm, ...]:
    return (place_labels, label, merge, count_labels, place_runs, place_components, number_labels, *measure)


_COLLECTED = (collect_features, measure_intensities)

GPU_SEQUENCES: Mapping[str, tuple[Algorithm, ...]] = {
    "naive": _sequence(naive_label, merge_pixels, measure_pixels),
    "playne": _sequence(playne_label, merge_pixels, measure_pixels),
    "ha4_32": _sequence(ha4_32_label, ha4_32_merge, ha4_32_measure),
    "ha4_32_cd": _sequence(ha4_32_label, ha4_32_merge, ha4_32_measure_cd),
    "ha4_32_otf": _sequence(ha4_32_otf_label, ha4_32_otf_merge, *_COLLECTED),
    "ha4_64": _sequence(ha4_64_label, ha4_64_merge, ha4_64_measure),
    "ha4_64_cd": _sequence(ha4_64_label, ha4_64_merge, ha4_64_measure_cd),
    "ha4_64_otf": _sequence(ha4_otf_label, ha4_otf_merge, *_COLLECTED),
    "flsl": _sequence(flsl_label, flsl_merge, flsl_measure),
    "flsl_cd": _sequence(flsl_label, flsl_merge, flsl_measure_cd),
    "flsl_otf": _sequence(flsl_otf_label, flsl_otf_merge, *_COLLECTED),
}
"""HA4 (`ha4_…`) joins along edges only (4-connected). `cd`: conflict detection; `otf`: features on the fly."""
