"""The labelling sequences for GPUs: their configurations, and images through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.imaging.gpu_labelling.sequences import GPU_SEQUENCES
from tests.processing.imaging.image_events import (
    SUMS,
    Labelled,
    features_of_event,
    mep_of_images,
    number_of_event,
    run_chain,
)

COMPONENT_BIT = 1 << 31
LABELS = ("pixels.offset", "pixels.label")
COLUMNS = (
    *("events.number", "images.shape", "image_rows.offset", "image_rows.count", "runs.count"),
    *("components.offset", "components.count"),
    *("all_components.count", "components.area", "components.box", "events.flags"),
    *(f"components.{name}" for name in SUMS),
)
"""Columns whose content does not depend on the order of threads."""


@dataclass(frozen=True, slots=True)
class Way:
    """A sequence with one set of constants. diagonal: whether corners touch."""

    sequence: str
    diagonal: bool
    constants: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """The sequence, its connectivity, and constants."""
        return "-".join([self.sequence, "8" if self.diagonal else "4", *(f"{name}_{n}" for name, n in self.constants)])

    def configuration(self, **constants: int) -> str:
        """As TOML; each constant goes to the first algorithms of the sequence that have it."""
        algorithms = GPU_SEQUENCES[self.sequence]
        values = dict(self.constants) | constants | {"diagonal": int(self.diagonal)}
        lines = [f'[sequence]\nname = "{self.sequence}"\n']
        for algorithm in algorithms:
            own = [constant.name for constant in algorithm.constants if constant.name in values]
            if own:
                lines.append(f"[sequence.{algorithm.name}]\n" + "".join(f"{name} = {values[name]}\n" for name in own))
        return "".join(lines)


def _ways() -> list[Way]:
    ways = []
    for sequence, algorithms in GPU_SEQUENCES.items():
        constants = {constant.name for algorithm in algorithms for constant in algorithm.constants}
        if "diagonal" in constants:
            ways += [Way(sequence, True), Way(sequence, False)]
        elif "interleaved" in constants:
            ways += [Way(sequence, False, (("interleaved", n),)) for n in (0, 1)]
        else:
            ways.append(Way(sequence, False))
    return ways


WAYS = tuple(_ways())


def label_through(way: Way, images: Sequence[NDArray[Any]], *, threads: int = 1, **of_mep: Any) -> list[Labelled]:
    """The images through a sequence, in one batch. Labels are those of the label image of the algorithm."""
    return label_meps(way, [mep_of_images(images, **of_mep)], images, threads=threads)


def label_meps(
    way: Way,
    meps: Sequence[EncodedMep],
    images: Sequence[NDArray[Any]],
    *,
    threads: int = 1,
    threshold: int = 1,
) -> list[Labelled]:
    """MEPs whose events have these images, in one batch."""

    def read(columns: Mapping[str, NDArray[Any]], event: int, lines: frozenset[str], accepted: bool) -> Labelled:
        image = images[event]
        foreground = image if image.dtype == np.bool_ else image >= threshold
        if int(columns["image_rows.count"][event]) == 0:
            foreground = foreground[:0, :0]
        first = int(columns["pixels.offset"][event])
        return Labelled(
            components_of_pixels(columns["pixels.label"][first:], foreground),
            features_of_event(columns, event),
            int(columns["all_components.count"][event]),
            int(columns["events.flags"][event]),
            lines,
            accepted,
            number_of_event(columns, event),
        )

    configuration = way.configuration(threshold=threshold)
    return run_chain(meps, configuration, threads=threads, names=(*COLUMNS, *LABELS), read=read)[0]


def components_of_pixels(labels: NDArray[np.uint32], foreground: NDArray[np.bool_]) -> NDArray[np.int32]:
    """i32[height, width]: the component of each pixel, -1 for background, from the label of the first pixel of its run.

    labels: the label image, whose rows have an even number of places.
    """
    height, width = foreground.shape
    found = np.full((height, width), -1, np.int32)
    y, x = np.nonzero(foreground)
    begins = foreground.copy()
    begins[:, 1:] &= ~foreground[:, :-1]
    start = np.maximum.accumulate(np.where(begins, np.arange(width), 0), axis=1)[y, x]
    label = labels[y * (width + width % 2) + start]
    while not np.all(ended := label >= COMPONENT_BIT):
        label[~ended] = labels[label[~ended]]
    found[y, x] = label - COMPONENT_BIT
    return found
