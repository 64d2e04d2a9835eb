"""A drawing of an image with its components in colour: SVG of runs, made of numbers alone."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.imaging.offline.display.event_reader import EventReader, ImagePicture
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank

COLOURS = (
    *("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2"),
    *("#eeca3b", "#ff9da6", "#9d755d", "#2f9e9e", "#7b61d1", "#8bbf3f"),
)
"""Components take them in turn, in the order of their first pixels."""
MOST_PIXELS = 512
"""Pixels of a side of the drawing; of larger images every second, third ... pixel is drawn."""


def picture_maker(
    chain: TriggerChain, geometry: Constants, trigger: TriggerConfig
) -> Callable[[Sequence[RawBank]], str]:
    """A function that draws an event from its raw banks for the status page, with one thread of the CPU.

    Raises as EventReader; the function that is returned raises as EventReader.read.
    """
    reader = EventReader(chain, create_backend("cpu", chain.kernels, threads=1), geometry, trigger)
    return lambda banks: image_drawing(reader.read(banks))


def step_of(picture: ImagePicture) -> int:
    """Every how many-th pixel is drawn."""
    longest: int = max(*picture.labels.shape, 1)
    return -(-longest // MOST_PIXELS)


def image_drawing(picture: ImagePicture) -> str:
    """The components in colour on a dark ground."""
    step = step_of(picture)
    labels = picture.labels[::step, ::step]
    height, width = labels.shape
    paths = "".join(
        f'<path fill="{COLOURS[colour]}" d="{path}"/>' for colour, path in enumerate(_paths(labels)) if path
    )
    return (
        f'<div class="projections"><svg viewBox="0 0 {max(width, 1)} {max(height, 1)}" role="img" '
        f'aria-label="the image with its components in colour" shape-rendering="crispEdges">'
        f'<rect width="{width}" height="{height}" fill="#10141c"/>{paths}</svg></div>'
    )


def _paths(labels: NDArray[np.int32]) -> list[str]:
    """The runs of the components of each colour as the path of an SVG."""
    height, width = labels.shape
    edged = np.full((height, width + 2), -1, np.int32)
    edged[:, 1:-1] = labels
    changes = edged[:, 1:] != edged[:, :-1]
    begins = np.argwhere(changes[:, :-1] & (labels >= 0))
    ends = np.argwhere(changes[:, 1:] & (labels >= 0))
    colour = labels[begins[:, 0], begins[:, 1]] % len(COLOURS)
    paths = []
    for number in range(len(COLOURS)):
        chosen = colour == number
        paths.append(
            "".join(
                f"M{x} {y}h{end - x + 1}v1H{x}z"
                for (y, x), end in zip(begins[chosen].tolist(), ends[chosen, 1].tolist(), strict=True)
            )
        )
    return paths
