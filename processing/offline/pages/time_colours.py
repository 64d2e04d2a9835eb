"""Colours of hits by their time in SVG drawings, and the scale of these colours."""

import numpy as np
from numpy.typing import NDArray

_ANCHORS = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], float)
"""Colours of early to late times: five of the map viridis (S. van der Walt, N. Smith, 2015), which is also read in
grey and by colour-blind readers."""
OTHER = "#c3c9d1"
"""Hits outside of the time of the colours, and parts of the detector."""


def time_colours(times: NDArray[np.integer], span: tuple[int, int]) -> list[str]:
    """The colour of each time in ns, as #rrggbb. span: first and last time with a colour; others are OTHER."""
    first, last = span
    part = (times - first) / max(last - first, 1)
    steps = np.linspace(0.0, 1.0, len(_ANCHORS))
    mixed = np.column_stack([np.interp(part, steps, channel) for channel in _ANCHORS.T]).astype(int)
    inside = (part >= 0.0) & (part <= 1.0)
    return [
        f"#{red:02x}{green:02x}{blue:02x}" if is_in else OTHER
        for (red, green, blue), is_in in zip(mixed.tolist(), inside.tolist(), strict=True)
    ]


def time_scale(span: tuple[int, int], width: float, edge: float) -> str:
    """An SVG drawing of the scale, `width` wide with `edge` free on both sides."""
    stops = "".join(
        f'<stop offset="{i / (len(_ANCHORS) - 1):.2f}" stop-color="rgb({red:.0f},{green:.0f},{blue:.0f})"/>'
        for i, (red, green, blue) in enumerate(_ANCHORS.tolist())
    )
    return (
        f'<svg viewBox="0 0 {width:.0f} 40" role="img" aria-label="scale of times"><defs><linearGradient id="time">'
        f'{stops}</linearGradient></defs><rect x="{edge}" y="4" width="{width - 2 * edge:.0f}" height="12" '
        f'fill="url(#time)"/><text x="{edge}" y="32">{span[0]} ns</text>'
        f'<text x="{width - edge:.0f}" y="32" text-anchor="end">{span[1]} ns</text></svg>'
    )
