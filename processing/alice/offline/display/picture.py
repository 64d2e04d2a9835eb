"""A drawing of a slice: two projections as SVG, of numbers alone."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.offline.display.event_reader import EventReader, SlicePicture
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank

COLOURS = {
    "clusters": "#1d2430",
    "deleted links": "#c3c9d1",
    "links": "#4c78a8",
    "seeds": "#54a24b",
    "tracklets": "#eeca3b",
    "tracks": "#e45756",
}


def picture_maker(
    chain: TriggerChain, geometry: Constants, trigger: TriggerConfig
) -> Callable[[Sequence[RawBank]], str]:
    """A function that draws an event from its raw banks for the status page, with one thread of the CPU.

    Raises as EventReader; the function that is returned raises as EventReader.read.
    """
    backend = create_backend("cpu", chain.kernels, threads=1)
    reader = EventReader(chain, backend, geometry, trigger)
    return lambda banks: slice_drawing(reader.read(banks))


def slice_drawing(picture: SlicePicture) -> str:
    """Across the beam and along it: clusters, links in blue, deleted ones in grey, seeds, tracklets and tracks."""
    legend = "".join(
        f'<li><svg viewBox="0 0 18 12" aria-hidden="true"><rect x="1" y="1" width="16" height="10" fill="{colour}"/>'
        f"</svg>{name}</li>"
        for name, colour in COLOURS.items()
    )
    across = _projection(picture, -picture.y, (-46.0, 92.0), "x to the right, y upwards")
    along = _projection(picture, picture.drift, (-8.0, 266.0), "x to the right, drift coordinate downwards")
    return f'<div class="projections">{across}{along}</div><ul class="legend">{legend}</ul>'


def _projection(picture: SlicePicture, v: NDArray[np.float64], span: tuple[float, float], title: str) -> str:
    places = [f"{a:.2f} {b:.2f}" for a, b in zip(picture.x.tolist(), v.tolist(), strict=True)]

    def pairs(links: NDArray[np.int64]) -> str:
        return "".join(f"M{places[first]}L{places[second]}" for first, second in links.tolist())

    def dots(which: Iterable[int]) -> str:
        return "".join(f"M{places[i]}h0" for i in which)

    def lines(of: Iterable[NDArray[np.int64]]) -> str:
        return "".join("M" + "L".join(places[i] for i in clusters.tolist()) for clusters in of if len(clusters))

    layers = (
        ("deleted links", pairs(picture.deleted_links), 0.15),
        ("links", pairs(picture.links), 0.15),
        ("tracklets", lines(picture.tracklets), 0.5),
        ("tracks", lines(picture.tracks), 0.25),
        ("clusters", dots(range(len(places))), 0.45),
        ("seeds", dots(picture.seeds.tolist()), 0.9),
    )
    drawn = "".join(
        f'<path d="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="{width}" stroke-linecap="round"/>'
        for name, path, width in layers
        if path
    )
    return f'<svg viewBox="82 {span[0]:g} 168 {span[1]:g}" role="img" aria-label="{title}">{drawn}</svg>'
