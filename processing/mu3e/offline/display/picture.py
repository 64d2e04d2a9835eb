"""A drawing of hits in three projections: SVG of numbers alone. The colour is the time."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.mu3e.detector_constants import (
    LAYER_RADII,
    LAYER_SENSORS,
    PIXEL_MM,
    RECURL_CENTRE,
    TARGET_HALF_LENGTH,
    TARGET_RADIUS,
)
from hltnode.processing.mu3e.offline.display.event_reader import HitPicture
from hltnode.processing.offline.pages.time_colours import OTHER, time_colours, time_scale
from hltnode.protocol.mu3e.hit_banks import PIXELS

TRUTH = "#e45756"
FOUND = "#4c78a8"
ACROSS = 100.0
"""mm from the axis that the drawings show."""
ALONG = RECURL_CENTRE + 190.0
_Seen = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Places f64[..., 3] in mm to places of a drawing, f64[..., 2]."""
VIEWS = (("x", "y"), ("z", "y"), ("z", "x"))
_AXES = {"x": 0, "y": 1, "z": 2}
_SCALE = 2.0
"""Units of a drawing for each mm around the axis; half as much along it."""
_EDGE = 24.0
_SENSOR = PIXELS * PIXEL_MM


def hit_drawing(picture: HitPicture) -> str:
    """The projections, the scale of colours, and a legend."""
    legend = "".join(
        f'<li><svg viewBox="0 0 18 12" aria-hidden="true"><rect x="1" y="1" width="16" height="10" fill="{colour}"/>'
        f"</svg>{text}</li>"
        for colour, text in (
            (OTHER, "sensors, target, and hits at other times"),
            (FOUND, "vertices and their tracks"),
            (TRUTH, "true decays to three electrons"),
        )
    )
    views = "".join(_view(picture, *axes) for axes in VIEWS)
    return f'<div class="views">{views}</div>{time_scale(picture.span, 920.0, 44.0)}<ul class="legend">{legend}</ul>'


def _view(picture: HitPicture, across: str, up: str) -> str:
    reach = ALONG if across == "z" else ACROSS
    scale = _SCALE / 2.0 if across == "z" else _SCALE
    width, height = 2 * (reach * scale + _EDGE), 2 * (ACROSS * _SCALE + _EDGE)

    def seen(places: NDArray[np.float64]) -> NDArray[np.float64]:
        flat = places[..., [_AXES[across], _AXES[up]]]
        moved: NDArray[np.float64] = flat * [scale, -_SCALE] + [width / 2, height / 2]
        return moved

    colours = time_colours(picture.times, picture.span)
    rows = sorted(zip(colours, seen(picture.places).tolist(), strict=True), key=lambda row: row[0] != OTHER)
    hits = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2.0 if colour == OTHER else 3.2}" fill="{colour}"/>'
        for colour, (x, y) in rows
    )
    curves = "".join(
        f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>' for points in seen(picture.curves).tolist()
    )
    found = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/>' for x, y in seen(picture.vertices).tolist())
    true = "".join(
        f'<path d="M{x - 6:.1f} {y:.1f}H{x + 6:.1f}M{x:.1f} {y - 6:.1f}V{y + 6:.1f}"/>'
        for x, y in seen(picture.true).tolist()
    )
    detector = _rings(seen) if across == "x" else _layers(seen, across, up)
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{up} against {across}">'
        f'<g fill="none" stroke="{OTHER}">{detector}</g>'
        f'<g fill="none" stroke="{FOUND}">{curves}</g>{hits}'
        f'<g fill="{FOUND}">{found}</g><g stroke="{TRUTH}" stroke-width="2">{true}</g>'
        f'<text x="8" y="{height - 6:.0f}">{up} against {across}, up to {ACROSS:.0f} mm and {reach:.0f} mm</text></svg>'
    )


def _rings(seen: _Seen) -> str:
    middle = seen(np.zeros(3)).tolist()
    return "".join(
        f'<circle cx="{middle[0]:.1f}" cy="{middle[1]:.1f}" r="{radius * _SCALE:.1f}"/>'
        for radius in (*LAYER_RADII, TARGET_RADIUS)
    )


def _layers(seen: _Seen, across: str, up: str) -> str:
    drawn = ""
    for layer, (radius, sensors) in enumerate(zip(LAYER_RADII, LAYER_SENSORS, strict=True)):
        for middle in (0.0, -RECURL_CENTRE, RECURL_CENTRE) if layer >= 2 else (0.0,):
            for side in (-radius, radius):
                ends = np.zeros((2, 3))
                ends[:, _AXES[across]] = middle + sensors * _SENSOR / 2.0 * np.array([-1.0, 1.0])
                ends[:, _AXES[up]] = side
                drawn += _path(seen(ends))
    cone = np.zeros((5, 3))
    cone[:, _AXES[across]] = np.array([-1.0, 0.0, 1.0, 0.0, -1.0]) * TARGET_HALF_LENGTH
    cone[:, _AXES[up]] = np.array([0.0, 1.0, 0.0, -1.0, 0.0]) * TARGET_RADIUS
    return drawn + _path(seen(cone))


def _path(points: NDArray[np.float64]) -> str:
    return f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points.tolist())}"/>'
