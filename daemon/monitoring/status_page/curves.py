"""Curves of the last hour as inline SVG: one path each, in the colours of the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hltnode.daemon.monitoring.status_page.last_hour import PERIOD_NS, SAMPLES, Samples
from hltnode.daemon.monitoring.status_page.numbers import latency, number, utc

CURVE_WIDTH, CURVE_HEIGHT = 260, 70
"""Size of the area of a curve, in units of the drawing."""
HOUR_NS = SAMPLES * PERIOD_NS
# A missing sample interrupts a curve: the event loop stood still.
GAP_NS = 3 * PERIOD_NS


@dataclass(frozen=True, slots=True)
class Curve:
    """`path`: SVG, empty without values. The texts have units; `last` is the newest value."""

    name: str
    path: str
    last: str
    highest: str
    lowest: str


@dataclass(frozen=True, slots=True)
class Curves:
    """The curves, the times of day of their axis, and that of the newest sample (UTC; empty without one)."""

    curves: Sequence[Curve]
    start: str
    end: str
    newest: str


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


_SHOWN: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("event rate", lambda value: f"{number(value)}Hz"),
    ("accepted rate", lambda value: f"{number(value)}Hz"),
    ("dead time", _percent),
    ("latency", latency),
)
"""Name and unit of each quantity, in the order of `QUANTITIES`."""


def drawn_curves(samples: Samples, now_ns: int, now_s: float) -> Curves:
    """The curves of the hour before now."""
    curves = []
    for (name, unit), values in zip(_SHOWN, samples.values.T.astype(float), strict=True):
        known = values[~np.isnan(values)]
        if len(known):
            top = max(float(known.max()), 1e-9) if name != "dead time" else 1.0
            texts = unit(float(known[-1])), unit(float(known.max())), unit(float(known.min()))
            curves.append(Curve(name, _path(samples.ends.tolist(), values.tolist(), now_ns, top), *texts))
        else:
            curves.append(Curve(name, "", "–", "–", "–"))
    newest = utc(now_s - (now_ns - int(samples.ends[-1])) * 1e-9)[-8:] if len(samples.ends) else ""
    return Curves(curves, utc(now_s - HOUR_NS * 1e-9)[-8:-3], utc(now_s)[-8:-3], newest)


def _path(ends: Sequence[int], values: Sequence[float], now_ns: int, top: float) -> str:
    steps = []
    before: int | None = None
    for end, value in zip(ends, values, strict=True):
        if value != value:
            before = None
            continue
        x = max(0.0, CURVE_WIDTH * (1 - (now_ns - end) / HOUR_NS))
        y = CURVE_HEIGHT * (1 - min(1.0, value / top))
        # A single sample is a point of the width of the stroke: h0 draws it.
        steps.append(f"L{x:.1f} {y:.1f}" if before is not None and end - before < GAP_NS else f"M{x:.1f} {y:.1f}h0")
        before = end
    return "".join(steps)
