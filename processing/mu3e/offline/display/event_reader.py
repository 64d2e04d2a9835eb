"""From the raw banks of a sub-slice, or of the record of a window, to its picture."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.mu3e.detector_constants import MEV_PER_MM
from hltnode.processing.mu3e.geometry.sensor_table import pixel_positions, sensors
from hltnode.processing.mu3e.tracks.collections import MAX_TRACKS, track, track_count
from hltnode.processing.mu3e.vertices.collections import (
    MAX_VERTICES,
    MAX_WINDOWS,
    vertex,
    vertex_count,
    window,
    window_count,
)
from hltnode.processing.offline.counted import counted
from hltnode.processing.offline.sub_slice_reader import SubSliceReader, readable_hits
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.mu3e.hit_banks import HIT, PIXELS, TRUE_DECAY, DecayKind, hits_of, true_decays_of
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.time_windows import TimeWindow, decode_window

CURVE_POINTS = 60
BACKWARDS = 30.0
"""mm of transverse path before the first hit that a track is drawn: up to the target."""
_RETAINED = tuple(each.name for each in (track_count, track, vertex_count, vertex, window_count, window))
_NO_CURVES = np.empty((0, CURVE_POINTS, 3))
_NO_PLACES = np.empty((0, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class HitPicture:
    """Hits of a sub-slice, or of a window that a node kept.

    times: i64[hits] in ns since the start of the sub-slice, or of the window. places: f64[hits, 3] in mm. windows:
    i64[windows, 2], start and end in ns. vertices: f64[vertices, 3] in mm; curves: f64[tracks, CURVE_POINTS, 3], the
    tracks of vertices; vertex_rows: time in ns, energy in MeV, sum of momenta in MeV/c and chi2 of each vertex. true:
    f64[decays, 3], where simulated decays to three electrons lie. lines: those that accept the sub-slice; None where
    none was run.
    """

    times: NDArray[np.int64]
    places: NDArray[np.float64]
    windows: NDArray[np.int64]
    vertices: NDArray[np.float64]
    curves: NDArray[np.float64]
    vertex_rows: tuple[tuple[float, float, float, float], ...]
    true: NDArray[np.float64]
    title: str
    flags: tuple[str, ...]
    lines: tuple[str, ...] | None

    @property
    def summary(self) -> str:
        """Numbers of hits, vertices and windows, or of the hits of a window."""
        if self.lines is None:
            return f"{counted(len(self.times), 'hit')} in {self.windows[0, 1]} ns"
        truth = f"; {counted(len(self.true), 'true decay')}" if len(self.true) else ""
        vertices = counted(len(self.vertices), "vertex", "vertices")
        return f"{counted(len(self.times), 'hit')}, {vertices}, {counted(len(self.windows), 'window')}{truth}"

    @property
    def span(self) -> tuple[int, int]:
        """The times in ns between which hits have colours: those of windows, or of all hits."""
        of = self.windows if len(self.windows) else self.times
        return (int(of.min()), int(of.max()) + 1) if of.size else (0, 1)


def track_curves(tracks: NDArray[np.void]) -> NDArray[np.float64]:
    """Half a turn of each track and its way back to the target, f64[tracks, CURVE_POINTS, 3] in mm."""
    px, py, pz, x, y, z, charge = (
        tracks[name].astype(np.float64)[:, None] for name in ("px", "py", "pz", "x", "y", "z", "charge")
    )
    transverse = np.hypot(px, py)
    radius = transverse / MEV_PER_MM
    turn = np.linspace(-BACKWARDS / radius[:, 0], np.full(len(tracks), np.pi), CURVE_POINTS, axis=1)
    centre_x, centre_y = x + charge * py / MEV_PER_MM, y - charge * px / MEV_PER_MM
    angle = np.arctan2(y - centre_y, x - centre_x) - charge * turn
    along = z + pz / transverse * radius * turn
    return np.stack([centre_x + radius * np.cos(angle), centre_y + radius * np.sin(angle), along], axis=-1)


class EventReader:
    """Runs single sub-slices through the chain and its lines. Raises TriggerConfigError and BackendError."""

    def __init__(self, chain: TriggerChain, backend: Backend, geometry: Constants, trigger: TriggerConfig) -> None:
        self._reader = SubSliceReader(chain, backend, geometry, trigger, _RETAINED)

    def close(self) -> None:
        """Stop the back end."""
        self._reader.close()

    def read(self, banks: Sequence[RawBank], encoding: str = AUTO) -> HitPicture:
        """The picture of a sub-slice or of a window. Raises ProtocolError, BackendError, and ValueError."""
        kept = decode_window(banks)
        return self._of_sub_slice(banks, encoding) if kept is None else self._of_window(kept)

    def _of_window(self, kept: TimeWindow) -> HitPicture:
        shown = self._reader.shown(kept, HIT)
        times, places = _known(shown.hits, shown.times)
        return HitPicture(
            times=times,
            places=places,
            windows=shown.windows,
            vertices=_NO_PLACES,
            curves=_NO_CURVES,
            vertex_rows=(),
            true=_NO_PLACES,
            title=shown.title,
            flags=shown.flags,
            lines=None,
        )

    def _of_sub_slice(self, banks: Sequence[RawBank], encoding: str) -> HitPicture:
        computed = self._reader.compute(banks, encoding)
        workspace, place = computed.workspace, computed.place
        counts = {each.name: int(workspace.fetch(each.name)[place]) for each in (vertex_count, window_count)}
        tracks = workspace.fetch(track.name).reshape(-1, MAX_TRACKS)[place]
        vertices = workspace.fetch(vertex.name).reshape(-1, MAX_VERTICES)[place][: counts[vertex_count.name]]
        windows = workspace.fetch(window.name).reshape(-1, MAX_WINDOWS)[place][: counts[window_count.name]]
        of_vertices = np.unique([vertices[name] for name in ("track0", "track1", "track2")])
        hits = readable_hits(banks, hits_of, HIT)
        times, places = _known(hits, hits["time"].astype(np.int64))
        decays = true_decays_of(banks)
        decays = np.empty(0, TRUE_DECAY) if decays is None else decays
        of_three = np.isin(decays["kind"], (DecayKind.SIGNAL, DecayKind.CONVERSION))
        return HitPicture(
            times=times,
            places=places,
            windows=np.column_stack([windows["start_ns"], windows["end_ns"]]).astype(np.int64),
            vertices=np.column_stack([vertices[name].astype(np.float64) for name in "xyz"]),
            curves=track_curves(tracks[of_vertices]),
            vertex_rows=tuple(
                zip(*(vertices[name].tolist() for name in ("time", "energy", "momentum", "chi2")), strict=True)
            ),
            true=decays["vertex"][of_three].astype(np.float64),
            title=computed.title,
            flags=computed.flags,
            lines=computed.lines,
        )


def _known(hits: NDArray[np.void], times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Times and places of the hits of pixels that exist."""
    known = (hits["sensor"] < len(sensors())) & (hits["column"] < PIXELS) & (hits["row"] < PIXELS)
    return times[known], pixel_positions(hits[known])
