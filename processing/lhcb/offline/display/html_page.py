"""The scene of an event as one HTML file that needs nothing else: three projections to zoom, move and point at.

Everything that comes from the event goes into the page as escaped text, or as JSON in which no tag can end or begin.
"""

import math
from pathlib import Path
from typing import Any

from hltnode.processing.framework.page_templates import render
from hltnode.processing.lhcb.offline.display.scene import Scene, SceneHits, SceneTrack
from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.pages.script_data import five_digits, rounded, script_json
from hltnode.processing.offline.pages.template_folder import TEMPLATES as SHARED_TEMPLATES
from hltnode.processing.offline.particles.names import particle_name

_TEMPLATES = Path(__file__).parent / "templates"
# 10 µm: a tenth of the pitch of the finest strips, and less than the resolution of a pixel.
_DIGITS = 2
_VERTEX_DIGITS = 4


def event_page(scene: Scene, *, source: str, n_lines: int = 0) -> str:
    """The page. source: where the event is from, such as the name of its file; n_lines: how many lines were run."""
    return render(
        "event.html",
        _TEMPLATES,
        SHARED_TEMPLATES,
        title=f"LHCb {scene.title}",
        source=source,
        summary=scene.summary,
        lines=scene.lines,
        n_lines=n_lines,
        flags=scene.flags,
        scene=script_json(_content(scene)),
    )


def _content(scene: Scene) -> dict[str, Any]:
    return {
        "hits": {name: _hits(hits) for name, hits in scene.hits.items()},
        "tracks": [_track(track) for track in scene.tracks],
        "vertices": [
            {"place": _place(it.place), "errors": _place(it.errors), "tracks": five_digits(it.tracks)}
            for it in scene.vertices
        ],
        "decays": [
            {
                "place": _place(it.place),
                "errors": _place(it.errors),
                "tracks": it.tracks,
                "kinds": it.kinds,
                "chi2": five_digits(it.chi2),
                "pt": five_digits(it.pt),
                "flight": five_digits(it.flight),
                "flight_chi2": five_digits(it.flight_chi2),
                "corrected_mass": five_digits(it.corrected_mass),
                "masses": [(name, five_digits(mass)) for name, mass in it.masses],
            }
            for it in scene.decays
        ],
        "particles": [
            {
                "line": _line(it.line),
                "name": particle_name(it.pid),
                "mother": particle_name(it.mother_pid) if it.mother_pid else "",
                "p": five_digits(it.p),
                "pt": five_digits(it.pt),
                "eta": five_digits(it.eta),
                "long": it.is_long,
                "beauty": it.from_beauty,
                "signal": it.from_signal,
            }
            for it in scene.particles
        ],
        "cells": {
            "number": scene.cells.number.tolist(),
            "x": rounded(scene.cells.place[:, 0], _DIGITS),
            "y": rounded(scene.cells.place[:, 1], _DIGITS),
            "half": rounded(scene.cells.half, _DIGITS),
            "energy": rounded(scene.cells.energy, 0),
            "z": round(scene.cells.z, _DIGITS),
        },
        "clusters": [
            {
                "place": _place(it.place),
                "energy": five_digits(it.energy),
                "et": five_digits(it.et),
                "e19": five_digits(it.e19),
            }
            for it in scene.clusters
        ],
        "downstream_v0s": [
            {
                "place": _place(it.place),
                "legs": [_line(leg) for leg in it.legs],
                "tracks": it.tracks,
                "kinds": it.kinds,
                "chi2": five_digits(it.chi2),
                "pt": five_digits(it.pt),
                "ip": five_digits(it.ip),
                "masses": [(name, five_digits(mass)) for name, mass in it.masses],
            }
            for it in scene.downstream_v0s
        ],
        "stubs": [
            {"line": _line(it.line), "chi2_x": five_digits(it.chi2_x), "chi2_y": five_digits(it.chi2_y)}
            for it in scene.stubs
        ],
        "collisions": [{"place": _place(it.place), "tracks": it.tracks} for it in scene.collisions],
    }


def _hits(hits: SceneHits) -> dict[str, list[Any]]:
    x, y, z = (rounded(hits.points[:, axis], _DIGITS) for axis in range(3))
    return {"x": x, "y": y, "z": z, "track": hits.track.tolist(), "id": hits.ids.tolist()}


def _track(track: SceneTrack) -> dict[str, Any]:
    return {
        "kind": track.kind,
        "line": _line(track.line),
        "eta": five_digits(track.eta),
        "phi": five_digits(track.phi),
        "charge": track.charge,
        "p": five_digits(track.p),
        "pt": five_digits(track.pt),
        "ip": five_digits(track.ip),
        "ip_chi2": five_digits(track.ip_chi2),
        "chi2": five_digits(track.chi2),
        "ghost": five_digits(track.ghost_probability),
        "muon": track.is_muon,
        "eop": five_digits(track.eop),
        "electron": track.is_electron,
        "hits": track.hits,
    }


def _line(line: Float64Array) -> list[Any]:
    return rounded(line.ravel(), _DIGITS)


def _place(place: tuple[float, ...]) -> list[float | None]:
    return [round(value, _VERTEX_DIGITS) if math.isfinite(value) else None for value in place]
