"""A drawing of the sizes of banks by source: SVG of bars, of numbers alone."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.raw.offline.display.event_reader import BankPicture, EventReader
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank

WIDTH, HEIGHT = 620, 300
_LEFT, _BOTTOM = 56, 34
_TICKS = 4
COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2")
"""Colours of the first types of an event in ascending order; the others share OTHER."""
OTHER = "#8b95a3"


def picture_maker(
    chain: TriggerChain, geometry: Constants, trigger: TriggerConfig
) -> Callable[[Sequence[RawBank]], str]:
    """A function that draws an event from its raw banks for the status page, with one thread of the CPU.

    Raises as EventReader; the function that is returned raises as EventReader.read.
    """
    reader = EventReader(chain, create_backend("cpu", chain.kernels, threads=1), geometry, trigger)
    return lambda banks: bank_drawing(reader.read(banks))


def colour_of_types(picture: BankPicture) -> dict[int, str]:
    """The colour of each type of an event."""
    types = np.unique(picture.banks["type"]).tolist()
    return {kind: COLOURS[i] if i < len(COLOURS) else OTHER for i, kind in enumerate(types)}


def bank_drawing(picture: BankPicture) -> str:
    """A bar for each source in ascending order, and a legend of the types."""
    colours = colour_of_types(picture)
    legend = "".join(
        f'<li><svg viewBox="0 0 18 12" aria-hidden="true"><rect x="1" y="1" width="16" height="10" fill="{colour}"/>'
        f"</svg>type {kind}</li>"
        for kind, colour in colours.items()
    )
    return f'<div class="projections">{_panel(picture, colours)}</div><ul class="legend">{legend}</ul>'


def _panel(picture: BankPicture, colours: dict[int, str]) -> str:
    bottom = HEIGHT - _BOTTOM
    n = len(picture.banks)
    step = (WIDTH - _LEFT) / max(n, 1)
    top = round_up(int(picture.banks["size"].max(initial=0)))
    bars = "".join(
        f'<rect x="{_LEFT + (i + 0.1) * step:.2f}" y="{bottom * (1 - size / top):.1f}" width="{0.8 * step:.2f}" '
        f'height="{bottom * size / top:.1f}" fill="{colours[kind]}"/>'
        for i, (kind, size) in enumerate(
            zip(picture.banks["type"].tolist(), picture.banks["size"].tolist(), strict=True)
        )
    )
    heights = "".join(
        f'<text x="{_LEFT - 4}" y="{bottom * (1 - tick / _TICKS) + 4:.1f}" text-anchor="end">'
        f"{top * tick // _TICKS}</text>"
        for tick in range(_TICKS + 1)
    )
    shown = sorted({0, n // 2, n - 1}) if n else []
    names = "".join(
        f'<text x="{_LEFT + (i + 0.5) * step:.1f}" y="{bottom + 14}" text-anchor="middle">'
        f"{int(picture.banks['source'][i])}</text>"
        for i in shown
    )
    middle = f'x="{(_LEFT + WIDTH) / 2}" y="{bottom + 29}" text-anchor="middle"'
    return (
        f'<svg viewBox="-12 -24 {WIDTH + 48} {HEIGHT + 32}" role="img" aria-label="bytes of banks by source">'
        f'<text x="{_LEFT}" y="-8">bytes of banks by source</text>{bars}'
        f'<rect class="frame" fill="none" stroke="{OTHER}" x="{_LEFT}" y="0" width="{WIDTH - _LEFT}" '
        f'height="{bottom}"/>{heights}{names}<text {middle}>source id</text></svg>'
    )


def round_up(size: int) -> int:
    """The end of the axis of sizes: 1, 2 or 4 times a power of ten, at least 4 bytes."""
    power = 10 ** max(0, math.floor(math.log10(max(size, 1))))
    return next(end for end in (4, power, 2 * power, 4 * power, 8 * power, 10 * power) if end >= max(size, 4))
