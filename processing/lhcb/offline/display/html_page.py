"""The scene of an event as one HTML file that needs nothing else: three projections to zoom, move and point at.

Everything that comes from the event goes into the page as escaped text, or as JSON in which no tag can end or begin.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from hltnode.processing.framework.page_templates import render
from hltnode.processing.lhcb.offline.display.particle_names import particle_name
from hltnode.processing.lhcb.offline.display.scene import FloatArray, Scene, SceneHits, SceneTrack

_TEMPLATES = Path(__file__).parent / "templates"
# 10 µm: a tenth of the pitch of the finest strips, and less than the resolution of a pixel.
_DIGITS = 2
_VERTEX_DIGITS = 4


def event_page(scene: Scene, *, source: str, n_lines: int = 0) -> str:
    """The page. source: where the event is from, such as the name of its file; n_lines: how many lines were run."""
    return render(
        "event.html",
        _TEMPLATES,
        title=f"LHCb {scene.title}",
        source=source,
        summary=scene.summary,
        lines=scene.lines,
        n_lines=n_lines,
        flags=scene.flags,
        scene=Markup(_json(_content(scene))),
    )


def _json(content: dict[str, Any]) -> str:
    """JSON that can stand in a script element: no "<" in it, so no "</script>" and no "<!--"."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _content(scene: Scene) -> dict[str, Any]:
    return {
        "hits": {name: _hits(hits) for name, hits in scene.hits.items()},
        "tracks": [_track(track) for track in scene.tracks],
        "vertices": [
            {"place": _rounded(it.place), "errors": _rounded(it.errors), "tracks": _number(it.tracks)}
            for it in scene.vertices
        ],
        "decays": [
            {
                "place": _rounded(it.place),
                "errors": _rounded(it.errors),
                "tracks": it.tracks,
                "kinds": it.kinds,
                "chi2": _number(it.chi2),
                "pt": _number(it.pt),
                "flight": _number(it.flight),
                "flight_chi2": _number(it.flight_chi2),
                "corrected_mass": _number(it.corrected_mass),
                "masses": [(name, _number(mass)) for name, mass in it.masses],
            }
            for it in scene.decays
        ],
        "particles": [
            {
                "line": _line(it.line),
                "name": particle_name(it.pid),
                "mother": particle_name(it.mother_pid) if it.mother_pid else "",
                "p": _number(it.p),
                "pt": _number(it.pt),
                "eta": _number(it.eta),
                "long": it.is_long,
                "beauty": it.from_beauty,
                "signal": it.from_signal,
            }
            for it in scene.particles
        ],
        "collisions": [{"place": _rounded(it.place), "tracks": it.tracks} for it in scene.collisions],
    }


def _hits(hits: SceneHits) -> dict[str, list[Any]]:
    x, y, z = (_finite(hits.points[:, axis]) for axis in range(3))
    return {"x": x, "y": y, "z": z, "track": hits.track.tolist(), "id": hits.ids.tolist()}


def _track(track: SceneTrack) -> dict[str, Any]:
    return {
        "kind": track.kind,
        "line": _line(track.line),
        "eta": _number(track.eta),
        "phi": _number(track.phi),
        "charge": track.charge,
        "p": _number(track.p),
        "pt": _number(track.pt),
        "ip": _number(track.ip),
        "ip_chi2": _number(track.ip_chi2),
        "chi2": _number(track.chi2),
        "ghost": _number(track.ghost_probability),
        "muon": track.is_muon,
        "hits": track.hits,
    }


def _line(line: FloatArray) -> list[Any]:
    return _finite(line.ravel())


def _finite(values: FloatArray) -> list[Any]:
    """Rounded, None for what is no number."""
    return [value if math.isfinite(value) else None for value in np.round(values, _DIGITS).tolist()]


def _rounded(place: tuple[float, ...]) -> list[float | None]:
    return [round(value, _VERTEX_DIGITS) if math.isfinite(value) else None for value in place]


def _number(value: float) -> float | None:
    """Five digits are more than is known of it."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
