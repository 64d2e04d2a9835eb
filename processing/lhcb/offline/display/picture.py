"""A small drawing of an event for the status page of a node: SVG of lines and marks, whose colours are the page's."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.lhcb.offline.display.event_reader import EventReader
from hltnode.processing.lhcb.offline.display.scene import LONG_PART, VELO_PART, Scene
from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank

WIDTH, HEIGHT = 620, 300
_LEFT, _BOTTOM = 46, 34
_X, _Y, _Z = range(3)
# Points closer together than this in the drawing add nothing to a line.
_MIN_STEP = 3.0
_LEGEND = (
    ("velo", "VELO track", "line"),
    ("long", "long track", "line"),
    ("muon", "muon", "line"),
    ("pv", "primary vertex", "diamond"),
    ("sv", "secondary vertex", "square"),
)


@dataclass(frozen=True, slots=True)
class _Panel:
    """A projection: title, axes, their ranges in mm, the values at their ticks."""

    title: str
    horizontal: int
    vertical: int
    across: tuple[float, float]
    along: tuple[float, float]
    ticks: tuple[Sequence[int], Sequence[int]]
    parts: tuple[tuple[str, float, float], ...] = ()

    def x(self, values: Float64Array) -> Float64Array:
        low, high = self.across
        return _LEFT + (values - low) / (high - low) * (WIDTH - _LEFT)

    def y(self, values: Float64Array) -> Float64Array:
        low, high = self.along
        return (high - values) / (high - low) * (HEIGHT - _BOTTOM)


_PANELS = (
    _Panel(
        *("VELO and vertices, from the side", _Z, _Y, (-300, 800), (-45, 45)),
        ((-200, 0, 200, 400, 600), (-40, -20, 0, 20, 40)),
    ),
    _Panel(
        *("Tracking detectors, from above", _Z, _X, (-400, 9600), (-2600, 2600)),
        ((0, 2000, 4000, 6000, 8000), (-2000, -1000, 0, 1000, 2000)),
        (("UT", 2300, 2680), ("magnet", 3000, 7600), ("SciFi", 7800, 9430)),
    ),
)


def picture_maker(
    chain: TriggerChain, geometry: Constants, trigger: TriggerConfig
) -> Callable[[Sequence[RawBank]], str]:
    """A function that draws an event from its raw banks, with one thread of the CPU on every node.

    The reader of the events takes tens of MB: call this only when a picture is wanted. Raises as EventReader; the
    function that is returned raises as EventReader.read.
    """
    reader = EventReader(chain, create_backend("cpu", chain.kernels, threads=1), geometry, trigger, run_lines=False)
    return lambda banks: event_picture(reader.read(banks))


def event_picture(scene: Scene) -> str:
    """The drawing: two projections and a legend; of numbers alone."""
    panels = "".join(_drawn(panel, scene) for panel in _PANELS)
    legend = "".join(
        f'<li><svg viewBox="0 0 18 12" aria-hidden="true">{_symbol(kind, mark)}</svg>{name}</li>'
        for kind, name, mark in _LEGEND
    )
    return f'<div class="projections">{panels}</div><ul class="legend">{legend}</ul>'


def _symbol(kind: str, mark: str) -> str:
    if mark == "line":
        return f'<path class="{kind}" d="M1 6H17"/>'
    return f'<path class="{kind}" d="{_mark(9, 6, mark, 5)}"/>'


def _mark(x: float, y: float, mark: str, size: float) -> str:
    if mark == "square":
        return f"M{x - size * 0.7:.1f} {y - size * 0.7:.1f}h{size * 1.4:.1f}v{size * 1.4:.1f}h{-size * 1.4:.1f}z"
    return f"M{x:.1f} {y - size:.1f}l{size} {size}l{-size} {size}l{-size} {-size}z"


def _drawn(panel: _Panel, scene: Scene) -> str:
    right, bottom = WIDTH, HEIGHT - _BOTTOM
    long = [track for track in scene.tracks if track.kind == LONG_PART]
    kinds = {
        "velo": [track.line for track in scene.tracks if track.kind == VELO_PART],
        "long": [track.line for track in long if not track.is_muon],
        "muon": [track.line for track in long if track.is_muon],
    }
    if panel.parts:
        # There the tracks of the VELO are a point.
        del kinds["velo"]
    tracks = "".join(f'<path class="{kind}" d="{_path(panel, lines)}"/>' for kind, lines in kinds.items())
    marks = "".join(
        f'<path class="{kind}" d="{_marks(panel, places, mark)}"/>'
        for kind, mark, places in (
            ("sv", "square", [decay.place for decay in scene.decays]),
            ("pv", "diamond", [vertex.place for vertex in scene.vertices]),
        )
    )
    # Nested, so that nothing is drawn beyond the frame.
    width = right - _LEFT
    inner = f'<svg x="{_LEFT}" y="0" width="{width}" height="{bottom}" viewBox="{_LEFT} 0 {width} {bottom}">'
    return (
        f'<svg viewBox="-12 -24 {WIDTH + 24} {HEIGHT + 32}" role="img" aria-label="{panel.title}">'
        f'<text x="{_LEFT}" y="-8">{panel.title}</text>{_parts(panel, bottom)}{inner}'
        f'<path class="hits" d="{_hits(panel, scene)}"/>{tracks}{marks}</svg>'
        f'<rect class="frame" x="{_LEFT}" y="0" width="{width}" height="{bottom}"/>{_axes(panel, bottom)}</svg>'
    )


def _parts(panel: _Panel, bottom: int) -> str:
    drawn = ""
    for name, begin, end in panel.parts:
        left, right = panel.x(np.array([begin, end])).tolist()
        drawn += f'<rect class="part" x="{left:.1f}" y="0" width="{right - left:.1f}" height="{bottom}"/>'
        drawn += f'<text x="{(left + right) / 2:.1f}" y="14" text-anchor="middle">{name}</text>'
    return drawn


def _axes(panel: _Panel, bottom: int) -> str:
    across, along = panel.ticks
    places = zip(across, panel.x(np.array(across, float)).tolist(), strict=True)
    drawn = "".join(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{value}</text>' for value, x in places)
    heights = zip(along, panel.y(np.array(along, float)).tolist(), strict=True)
    drawn += "".join(f'<text x="{_LEFT - 4}" y="{y + 4:.1f}" text-anchor="end">{value}</text>' for value, y in heights)
    names = "xyz"
    middle = f'x="{(_LEFT + WIDTH) / 2}" y="{bottom + 29}" text-anchor="middle"'
    drawn += f"<text {middle}>{names[panel.horizontal]} (mm)</text>"
    upright = f'x="2" y="{bottom / 2}" transform="rotate(-90 2 {bottom / 2})" text-anchor="middle"'
    return drawn + f"<text {upright}>{names[panel.vertical]} (mm)</text>"


def _path(panel: _Panel, lines: Iterable[Float64Array]) -> str:
    parts = []
    for line in lines:
        x, y = panel.x(line[:, panel.horizontal]), panel.y(line[:, panel.vertical])
        # Beyond the frame a line needs no further points, and close points are one.
        shown = np.flatnonzero((x >= _LEFT) & (x <= WIDTH))
        if len(shown) < 2:
            continue
        first, last = int(shown[0]), min(int(shown[-1]) + 2, len(x))
        chosen = [first]
        for i in range(first + 1, last):
            if x[i] - x[chosen[-1]] >= _MIN_STEP or i == last - 1:
                chosen.append(i)
        points = [f"{a:.1f} {b:.1f}" for a, b in zip(x[chosen].tolist(), y[chosen].tolist(), strict=True)]
        parts.append("M" + "L".join(points))
    return "".join(parts)


def _hits(panel: _Panel, scene: Scene) -> str:
    """Dots; two in the same place of the drawing are one."""
    places: set[tuple[float, float]] = set()
    for hits in scene.hits.values():
        x = panel.x(hits.points[:, panel.horizontal])
        y = panel.y(hits.points[:, panel.vertical])
        shown = (x >= _LEFT) & (x <= WIDTH) & (y >= 0) & (y <= HEIGHT - _BOTTOM)
        places.update(zip(np.round(x[shown]).tolist(), np.round(y[shown]).tolist(), strict=True))
    return "".join([f"M{x:.0f} {y:.0f}h0" for x, y in sorted(places)])


def _marks(panel: _Panel, places: Sequence[tuple[float, float, float]], mark: str) -> str:
    if not places:
        return ""
    points = np.array(places)
    x, y = panel.x(points[:, panel.horizontal]), panel.y(points[:, panel.vertical])
    size = 6 if mark == "diamond" else 4
    return "".join(_mark(a, b, mark, size) for a, b in zip(x.tolist(), y.tolist(), strict=True))
