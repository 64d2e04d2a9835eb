"""A drawing of the spots with hits and rings: SVG of circles, of numbers alone."""

from collections.abc import Callable, Sequence

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.na62.offline.display.event_reader import EventReader, RingPicture
from hltnode.processing.na62.rich.pmt_positions import PITCH, PMTS_OF_SPOT, SPOT_RADIUS, positions
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank

RING_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2")
SPOT_COLOURS = ("#d62728", "#9467bd")
"""Hits of the first and of the second spot."""
TRUTH = "#8b95a3"
_TUBE = 8.0
"""mm: radius of a tube."""
_SIDE = SPOT_RADIUS + 2.0 * PITCH


def picture_maker(
    chain: TriggerChain, geometry: Constants, trigger: TriggerConfig
) -> Callable[[Sequence[RawBank]], str]:
    """A function that draws an event from its raw banks for the status page, with one thread of the CPU.

    Raises as EventReader; the function that is returned raises as EventReader.read.
    """
    reader = EventReader(chain, create_backend("cpu", chain.kernels, threads=1), geometry, trigger)
    return lambda banks: ring_drawing(reader.read(banks))


def ring_drawing(picture: RingPicture) -> str:
    """Both spots over each other: tubes, hits in the colour of their spot, rings, and dashed true rings."""
    places = positions()
    tubes = "".join(f'<circle cx="{x:.1f}" cy="{-y:.1f}" r="{_TUBE}"/>' for x, y in places[:PMTS_OF_SPOT].tolist())
    hits = "".join(
        f'<circle cx="{places[pmt, 0]:.1f}" cy="{-places[pmt, 1]:.1f}" r="{_TUBE - 1.5 * (pmt >= PMTS_OF_SPOT)}" '
        f'fill="{SPOT_COLOURS[pmt // PMTS_OF_SPOT]}" fill-opacity="0.8"/>'
        for pmt in picture.pmts.tolist()
    )
    found = "".join(
        f'<circle cx="{ring["x"]:.2f}" cy="{-ring["y"]:.2f}" r="{ring["radius"]:.2f}" fill="none" stroke-width="3" '
        f'stroke="{RING_COLOURS[i % len(RING_COLOURS)]}"/>'
        for i, ring in enumerate(picture.rings)
    )
    true = "".join(
        f'<circle cx="{ring["x"]:.2f}" cy="{-ring["y"]:.2f}" r="{ring["radius"]:.2f}" fill="none" stroke="{TRUTH}" '
        f'stroke-width="2" stroke-dasharray="10 6"/>'
        for ring in (() if picture.true_rings is None else picture.true_rings)
    )
    legend = "".join(
        f'<li><svg viewBox="0 0 18 12" aria-hidden="true"><rect x="1" y="1" width="16" height="10" fill="{colour}"/>'
        f"</svg>{text}</li>"
        for colour, text in (
            *((colour, f"hits of spot {i + 1}") for i, colour in enumerate(SPOT_COLOURS)),
            (RING_COLOURS[0], "rings, each in a colour"),
            (TRUTH, "true rings, dashed"),
        )
    )
    size = 2.0 * _SIDE
    return (
        f'<div class="projections"><svg viewBox="{-_SIDE:.0f} {-_SIDE:.0f} {size:.0f} {size:.0f}" role="img" '
        f'aria-label="hits and rings in the focal plane"><g fill="none" stroke="{TRUTH}" stroke-opacity="0.35">{tubes}'
        f'</g>{hits}{true}{found}</svg></div><ul class="legend">{legend}</ul>'
    )
