"""The scene of an event as a figure: the detector in two projections, the VELO, and the view along the beam.

Needs matplotlib.
"""

from collections.abc import Iterable
from io import BytesIO
from textwrap import wrap
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.display.scene import DOWNSTREAM_PART, LONG_PART, NO_TRACK, VELO_PART, Scene
from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.plots.figures import COLOURS, STYLE

_LONG, _MUON, _PV, _SV, _TRUTH, _DOWNSTREAM = COLOURS
_FREE, _USED, _VELO = "#a3abb6", "#39424e", "#8b95a3"
_X, _Y, _Z = range(3)
_NAMES = "xyz"
_PARTS = (("UT", 2300, 2680), ("magnet", 3000, 7600), ("SciFi", 7800, 9430), ("ECAL", 12603, 13035))
_MUON_PARTS = tuple((f"M{i}", z, z + 430) for i, z in ((2, 15050), (3, 16250), (4, 17460), (5, 18660)))
_WHOLE = {_X: (-5000, 5000), _Y: (-4200, 4200), _Z: (-500, 19500)}
_NEAR = {_X: (-48, 48), _Y: (-48, 48), _Z: (-320, 800)}
_LISTED_LINES = 8
_SUMMARY_WIDTH = 215
"""Characters of a line of the width of the figure."""
_CELL, _STUB = "#7a6cc4", "#8c5a2b"
# Bars of cells grow as the root of the energy, mm.
_BAR_OF_10_GEV, _LONGEST_BAR = 1000.0, 2300.0
_DPI = 150


def event_figure(scene: Scene, *, source: str) -> Figure:
    """The figure. source: where the event is from, such as the name of its file."""
    figure = Figure(figsize=(13, 9.2), layout="constrained")
    # Names of files and lines are no formulas, whatever they contain.
    title = figure.suptitle(f"LHCb {scene.title}\n", x=0.01, ha="left", fontsize=14, fontweight="bold")
    title.set_parse_math(False)
    summary = "\n".join(wrap(f"{source}: {scene.summary}", _SUMMARY_WIDTH))
    below = figure.text(0.01, 0.968, summary, fontsize=7.5, color="#5d6672", parse_math=False, va="top")
    below.set_in_layout(False)
    grid = figure.add_gridspec(3, 2, width_ratios=(5, 2.6), height_ratios=(1, 1, 0.19))
    _panel(figure.add_subplot(grid[0, 0]), scene, _Z, _X, _WHOLE, "from above: the magnet bends in this plane")
    _panel(figure.add_subplot(grid[1, 0]), scene, _Z, _Y, _WHOLE, "from the side")
    _panel(figure.add_subplot(grid[0, 1]), scene, _Z, _X, _NEAR, "VELO")
    _panel(figure.add_subplot(grid[1, 1]), scene, _X, _Y, _NEAR, "VELO, along the beam")
    legend = figure.add_subplot(grid[2, :])
    legend.axis("off")
    legend.legend(handles=_handles(scene), ncols=7, loc="upper left", fontsize=7.5, borderpad=0)
    legend.text(0, 0, _lines(scene), fontsize=8.5, parse_math=False, va="bottom", transform=legend.transAxes)
    return figure


def png(figure: Figure) -> bytes:
    """The figure as a picture."""
    buffer = BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def _panel(axes: Axes, scene: Scene, h: int, v: int, ranges: dict[int, tuple[int, int]], title: str) -> None:
    axes.set_title(title, loc="left", color="#5d6672")
    axes.set_xlim(ranges[h])
    axes.set_ylim(ranges[v])
    axes.set_xlabel(f"{_NAMES[h]} (mm)")
    axes.set_ylabel(f"{_NAMES[v]} (mm)")
    axes.grid(visible=True, color="#ebedf0")
    axes.set_axisbelow(True)
    if h == _Z and ranges is _WHOLE:
        for name, begin, end in (*_PARTS, *_MUON_PARTS):
            axes.axvspan(begin, end, color="#f1f3f6", zorder=0)
            axes.text((begin + end) / 2, ranges[v][1] * 0.98, name, ha="center", va="top", fontsize=8, color="#5d6672")
    if h == _X:
        axes.set_aspect("equal")
    for used, colour, size in ((False, _FREE, 0.6), (True, _USED, 1.2)):
        for hits in scene.hits.values():
            # The y of a strip's hit is NaN: matplotlib leaves it out where y is shown.
            chosen = hits.points[((hits.track != NO_TRACK) == used) & _between(hits.points[:, _Z], ranges[_Z])]
            axes.scatter(chosen[:, h], chosen[:, v], s=size, color=colour, linewidths=0, zorder=2, rasterized=True)
    if h == _Z and ranges is _WHOLE:
        length = np.minimum(_LONGEST_BAR, _BAR_OF_10_GEV * np.sqrt(scene.cells.energy / 1e4))
        axes.barh(
            *(scene.cells.place[:, v], length, 2 * scene.cells.half), left=scene.cells.z,
            color=_CELL, alpha=0.5, linewidth=0, zorder=2,
        )  # fmt: skip
    if scene.has_truth:
        particles = [particle.line for particle in scene.particles if particle.is_long]
        _add_lines(axes, particles, h, v, ranges[_Z], colors=_TRUTH, linewidths=0.7, alpha=0.8, zorder=3)
        for collision in scene.collisions:
            axes.plot(collision.place[h], collision.place[v], "x", color=_TRUTH, markersize=6, zorder=5)
    velo = [track.line for track in scene.tracks if track.kind == VELO_PART]
    _add_lines(axes, velo, h, v, ranges[_Z], colors=_VELO, linewidths=0.5, zorder=3)
    for is_muon, colour, width in ((False, _LONG, 0.7), (True, _MUON, 1.6)):
        long = [track.line for track in scene.tracks if track.kind == LONG_PART and track.is_muon == is_muon]
        _add_lines(axes, long, h, v, ranges[_Z], colors=colour, linewidths=width, zorder=4)
    downstream = [track.line for track in scene.tracks if track.kind == DOWNSTREAM_PART]
    _add_lines(axes, downstream, h, v, ranges[_Z], colors=_DOWNSTREAM, linewidths=1.0, zorder=4)
    legs = [leg for v0 in scene.downstream_v0s for leg in v0.legs]
    _add_lines(axes, legs, h, v, ranges[_Z], colors=_DOWNSTREAM, linewidths=0.8, linestyles="--", zorder=4)
    stubs = [stub.line for stub in scene.stubs]
    _add_lines(axes, stubs, h, v, ranges[_Z], colors=_STUB, linewidths=1.4, zorder=3)
    for v0 in scene.downstream_v0s:
        axes.plot(v0.place[h], v0.place[v], "o", color=_DOWNSTREAM, markersize=4.5, mec="black", mew=0.5, zorder=6)
    for decay in scene.decays:
        axes.plot(decay.place[h], decay.place[v], "s", color=_SV, markersize=3.5, mec="white", mew=0.4, zorder=6)
    for vertex in scene.vertices:
        axes.plot(vertex.place[h], vertex.place[v], "D", color=_PV, markersize=5, mec="white", mew=0.6, zorder=7)


def _between(z: Float64Array, ends: tuple[int, int]) -> NDArray[np.bool_]:
    return (z >= ends[0]) & (z <= ends[1])


def _add_lines(axes: Axes, lines: Iterable[Float64Array], h: int, v: int, ends: tuple[int, int], **style: Any) -> None:
    """Lines from their first point to the end of a range of z: their further points would hide the rest."""
    shown = [line[: np.count_nonzero(_between(line[:, _Z], ends)) + 1] for line in lines]
    axes.add_collection(LineCollection([np.stack([line[:, h], line[:, v]], axis=1) for line in shown], **style))


def _handles(scene: Scene) -> list[Line2D]:
    def line(label: str, colour: str, width: float = 1.5) -> Line2D:
        return Line2D([], [], color=colour, linewidth=width, label=label)

    def mark(label: str, colour: str, shape: str, size: float = 5) -> Line2D:
        return Line2D([], [], color=colour, linestyle="", marker=shape, markersize=size, label=label)

    handles = [
        mark("hit", _FREE, "s", 2.5),
        mark("hit of a long track", _USED, "s", 2.5),
        line("VELO track", _VELO, 1),
        line("long track", _LONG),
        line("muon", _MUON, 2.2),
        mark("primary vertex", _PV, "D"),
        mark("secondary vertex", _SV, "s", 4.5),
    ]
    if any(track.kind == DOWNSTREAM_PART for track in scene.tracks):
        handles += [line("downstream track", _DOWNSTREAM), mark("downstream V0", _DOWNSTREAM, "o", 4.5)]
    if scene.stubs:
        handles.append(line("muon stub", _STUB))
    if len(scene.cells.number):
        handles.append(mark("energy in the ECAL", _CELL, "s", 5))
    if scene.has_truth:
        handles += [line("true long particle", _TRUTH, 1), mark("true collision", _TRUTH, "x", 6)]
    return handles


def _lines(scene: Scene) -> str:
    if scene.lines is None:
        return ""
    if not scene.lines:
        return "Accepted by no line"
    more = len(scene.lines) - _LISTED_LINES
    return "Accepted by " + ", ".join(scene.lines[:_LISTED_LINES]) + (f" and {more} more lines" if more > 0 else "")
