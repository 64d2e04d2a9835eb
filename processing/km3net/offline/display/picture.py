"""A drawing of hits in space and of their heights against time: SVG of numbers alone. The colour is the time."""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.km3net.offline.display.event_reader import HitPicture
from hltnode.processing.offline.pages.time_colours import OTHER, time_colours, time_scale

TRUTH = "#e45756"
_TURN, _TILT = np.radians(35.0), np.radians(20.0)
"""From where the detector is seen: around the vertical, and from above."""
_THICKNESS = 0.35
"""Least width of a drawn detector in heights: a tower is drawn wider than it is."""
_SIZE = 460.0
_EDGE = 44.0
_TRACK = 0.7
"""Half of the length of a drawn muon in heights of the detector."""


def colours_of(picture: HitPicture) -> list[str]:
    """The colour of each hit."""
    return time_colours(picture.times, picture.span)


def stretch_of(positions: NDArray[np.float64]) -> float:
    """The factor by which horizontal distances are drawn larger than vertical ones, at least 1."""
    height = float(np.ptp(positions[:, 2])) if len(positions) else 1.0
    width = max(float(np.ptp(positions[:, 0])), float(np.ptp(positions[:, 1])), 1e-3) if len(positions) else 1.0
    return max(1.0, _THICKNESS * height / width)


def seen(places: NDArray[np.float64], stretch: float) -> NDArray[np.float64]:
    """Places f64[n, 3] in m as they are seen: to the right and upwards, f64[n, 2] in m."""
    x, y, z = (places * [stretch, stretch, 1.0]).T
    right = x * np.cos(_TURN) - y * np.sin(_TURN)
    depth = x * np.sin(_TURN) + y * np.cos(_TURN)
    return np.column_stack([right, z * np.cos(_TILT) + depth * np.sin(_TILT)])


def hit_drawing(picture: HitPicture) -> str:
    """Two drawings side by side, the scale of colours, and a legend."""
    legend = "".join(
        f'<li><svg viewBox="0 0 18 12" aria-hidden="true"><rect x="1" y="1" width="16" height="10" fill="{colour}"/>'
        f"</svg>{text}</li>"
        for colour, text in ((OTHER, "PMTs, and hits at other times"), (TRUTH, "true muons"), ("#eef1f5", "windows"))
    )
    scale = time_scale(picture.span, 2 * _SIZE, _EDGE)
    return f'<div class="views">{_in_space(picture)}{_in_time(picture)}</div>{scale}<ul class="legend">{legend}</ul>'


def _radius(charge: int) -> float:
    return min(10.0, 2.0 + 0.16 * float(np.sqrt(charge)))


def _in_space(picture: HitPicture) -> str:
    positions = picture.detector.positions
    stretch = stretch_of(positions)
    flat = seen(positions, stretch)
    low, high = (flat.min(0), flat.max(0)) if len(flat) else (np.zeros(2), np.ones(2))
    scale = (_SIZE - 2 * _EDGE) / max(float((high - low).max()), 1e-3)
    middle = (low + high) / 2.0

    def places(of: NDArray[np.float64]) -> list[list[float]]:
        moved = (of - middle) * [scale, -scale] + _SIZE / 2.0
        rows: list[list[float]] = moved.tolist()
        return rows

    pmts = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.5"/>' for x, y in places(flat))
    hits = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_radius(charge):.1f}" fill="{colour}" '
        f'fill-opacity="{0.35 if colour == OTHER else 0.85}"/>'
        for colour, charge, (x, y) in _outer_first(picture, places(flat[picture.pmts]))
    )
    reach = _TRACK * max(float(np.ptp(positions[:, 2])), 1.0) if len(positions) else 1.0
    tracks = ""
    for muon in picture.muons:
        ends = muon["position"] + np.array([[-reach], [reach]]) * muon["direction"]
        (a, b), (c, d) = places(seen(ends.astype(float), stretch))
        tracks += (
            f'<path d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" stroke="{TRUTH}" stroke-width="1.5" stroke-dasharray="6 4"/>'
        )
    wider = f", horizontal distances {stretch:.0f} times larger" if stretch > 1.0 else ""
    return (
        f'<svg viewBox="0 0 {_SIZE:.0f} {_SIZE:.0f}" role="img" aria-label="hits in space">'
        f'<g fill="{OTHER}">{pmts}</g>{hits}<g fill="none">{tracks}</g>'
        f'<text x="8" y="{_SIZE - 8:.0f}">hits in space{wider}</text></svg>'
    )


def _outer_first(picture: HitPicture, places: list[list[float]]) -> list[tuple[str, int, list[float]]]:
    """Colour, charge and place of hits: those without colour first, so that they hide none."""
    rows = list(zip(colours_of(picture), picture.charges.tolist(), places, strict=True))
    return sorted(rows, key=lambda row: row[0] != OTHER)


def _in_time(picture: HitPicture) -> str:
    first, last = picture.span
    heights = picture.detector.positions[:, 2]
    low, high = (float(heights.min()), float(heights.max())) if len(heights) else (0.0, 1.0)
    inner = _SIZE - 2 * _EDGE

    def across(time: float) -> float:
        return _EDGE + inner * (time - first) / max(last - first, 1)

    def upwards(height: float) -> float:
        return _SIZE - _EDGE - inner * (height - low) / max(high - low, 1e-3)

    windows = ""
    for start, end in picture.windows.tolist():
        left, right = across(max(start, first)), across(min(end, last))
        if right > left:
            windows += (
                f'<rect x="{left:.1f}" y="{_EDGE}" width="{right - left:.1f}" height="{inner:.0f}" fill="#eef1f5"/>'
            )
    hits = "".join(
        f'<circle cx="{across(time):.1f}" cy="{upwards(height):.1f}" r="{_radius(charge):.1f}" fill="{colour}"/>'
        for time, height, charge, colour in zip(
            picture.times.tolist(),
            heights[picture.pmts].tolist(),
            picture.charges.tolist(),
            colours_of(picture),
            strict=True,
        )
        if colour != OTHER
    )
    return (
        f'<svg viewBox="0 0 {_SIZE:.0f} {_SIZE:.0f}" role="img" aria-label="height of hits against time">{windows}'
        f'<path d="M{_EDGE} {_EDGE}V{_SIZE - _EDGE:.0f}H{_SIZE - _EDGE:.0f}" fill="none" stroke="#5d6672"/>{hits}'
        f'<text x="{_EDGE}" y="{_SIZE - 24:.0f}">{first} ns</text>'
        f'<text x="{_SIZE - _EDGE:.0f}" y="{_SIZE - 24:.0f}" text-anchor="end">{last} ns</text>'
        f'<text x="4" y="{_EDGE - 8}">{high:.0f} m</text><text x="4" y="{_SIZE - _EDGE + 14:.0f}">{low:.0f} m</text>'
        f'<text x="{_SIZE / 2:.0f}" y="{_SIZE - 8:.0f}" text-anchor="middle">height of PMTs against time</text></svg>'
    )
