"""The objects that a sequence finds in an event, for its scene: hits, tracks, vertices, cells and clusters."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.calorimeter import collections as ecal
from hltnode.processing.lhcb.calorimeter.find_clusters import find_clusters
from hltnode.processing.lhcb.geometry.ideal_ecal import FIRST_CELLS, SHOWER_MAXIMUM_Z
from hltnode.processing.lhcb.muon import collections as muon
from hltnode.processing.lhcb.offline.display.downstream_objects import (
    DOWNSTREAM_COLUMNS,
    STUB_COLUMNS,
    downstream_tracks,
    downstream_v0s,
    muon_stubs,
)
from hltnode.processing.lhcb.offline.display.lines_of_tracks import LineInZ, Strips, long_line, straight
from hltnode.processing.lhcb.offline.display.scene import (
    LONG_PART,
    NO_TRACK,
    VELO_PART,
    SceneCells,
    SceneCluster,
    SceneDecay,
    SceneDownstreamV0,
    SceneHits,
    SceneStub,
    SceneTrack,
    SceneVertex,
)
from hltnode.processing.lhcb.primary_vertices.collections import pv_count, vertices
from hltnode.processing.lhcb.scifi import collections as scifi
from hltnode.processing.lhcb.secondary_vertices import collections as secondary
from hltnode.processing.lhcb.tracks.kalman import collections as kalman
from hltnode.processing.lhcb.tracks.long import collections as long
from hltnode.processing.lhcb.ut import collections as ut
from hltnode.processing.lhcb.velo import collections as velo
from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.workspace_columns import Objects
from hltnode.processing.selection.trigger_chain import Constants
from hltnode.protocol.lhcb.lhcb_id import ut_channel

_MASSES = {"ππ": "m_pipi", "KK": "m_kk", "Kπ": "m_kpi", "πK": "m_pik", "pπ": "m_ppi", "πp": "m_pip", "µµ": "m_mumu"}
_KINDS = {
    secondary.VertexKind.VERTEX_DISPLACED: "displaced",
    secondary.VertexKind.VERTEX_KS: "K0S candidate",
    secondary.VertexKind.VERTEX_LAMBDA: "Λ candidate",
    secondary.VertexKind.VERTEX_DIMUON: "two muons",
    secondary.VertexKind.VERTEX_SAME_SIGN: "same charge",
}
_VELO = (
    *(velo.cluster_offset, velo.cluster_count, velo.hit_x, velo.hit_y, velo.hit_z, velo.hit_id),
    *(velo.track_count, velo.track_hit_count, velo.track_hits, velo.track_backward),
    *(velo.track_ip, velo.track_ip_chi2, *velo.beamline_state.values(), pv_count, vertices),
)
# A sequence without UT has columns of UT hits that stay empty, and no groups.
_UT = (ut.ut_hit_offset, ut.ut_count, ut.ut_group_offset, ut.ut_x, ut.ut_z, ut.ut_id)
_SCIFI = (scifi.scifi_hit_offset, scifi.scifi_count, scifi.scifi_x, scifi.scifi_z, scifi.scifi_id, scifi.scifi_info)
_MUON = (muon.muon_hit_offset, muon.muon_count, muon.muon_x, muon.muon_y, muon.muon_z, muon.muon_tile)
_LONG = (
    *(long.long_count, long.long_velo_track, long.long_hits, long.long_ut_hits, *long.long_state.values()),
    *(kalman.long_fitted_qop, kalman.long_ip, kalman.long_ip_chi2, kalman.long_full_chi2),
    *(kalman.long_ghost_probability, muon.long_is_muon, muon.long_muon_hits),
)
_DECAYS = (
    *(secondary.vertex_count, secondary.vertex_tracks_of, secondary.vertex_kind),
    *secondary.vertex_position.values(),
    *(secondary.vertex_covariance[name] for name in ("c00", "c11", "c22")),
    *(secondary.vertex_fit["chi2"], secondary.vertex_momentum["pt"]),
    *(secondary.vertex_flight[name] for name in ("fd", "fd_chi2", "m_corr")),
    *(secondary.vertex_masses[name] for name in _MASSES.values()),
)
_CELLS = (
    *(ecal.ecal_adc, ecal.cluster_count, *ecal.cluster_position.values()),
    *(ecal.cluster_energy, ecal.cluster_et, ecal.cluster_e19),
)
_ELECTRONS = (ecal.long_eop, ecal.long_is_electron)
DRAWN_COLUMNS = tuple(
    dict.fromkeys(
        chain(_VELO, _UT, _SCIFI, _MUON, _LONG, _DECAYS, _CELLS, _ELECTRONS, DOWNSTREAM_COLUMNS, STUB_COLUMNS)
    )
)
"""Columns that an engine must retain if its sequence has them."""
_LEAST_ADC = next(constant.value for constant in find_clusters.constants if constant.name == "min_neighbour_adc")
"""Cells with more counts are drawn: those that clusters may have."""
_MAT_INDEX = 0x7FF
"""Bits of scifi_info."""


class ReconstructedObjects:
    """Read from the workspace that has just run a batch of one event.

    hits: by detector. strips: of the hits whose y is open, by detector. The numbers of tracks in `hits` are places in
    `tracks`, where long tracks come first and then downstream tracks.
    """

    def __init__(self, workspace: Workspace, geometry: Constants) -> None:
        self._workspace = workspace
        self._columns = set(workspace.sequence.columns)
        self.strips: dict[str, Strips] = {}
        self.hits: dict[str, SceneHits] = {"VELO": self._hits(_VELO, velo.hit_x, velo.hit_y, velo.hit_z, velo.hit_id)}
        if self._makes(_UT):
            ids = self._of_hits(_UT, ut.ut_id)
            dx_dy = geometry[ut.ut_geometry.name].view(ut.UT_GEOMETRY.dtype)["dx_dy"][0]
            self._add_strips("UT", _UT, ut.ut_x, ut.ut_z, ids, dx_dy[ut_channel(ids).layer])
        if self._makes(_SCIFI):
            ids = self._of_hits(_SCIFI, scifi.scifi_id)
            mats = geometry[scifi.scifi_mats.name].view(scifi.SCIFI_MAT.dtype)
            dx_dy = mats["dx_dy"][self._of_hits(_SCIFI, scifi.scifi_info) & _MAT_INDEX]
            self._add_strips("SciFi", _SCIFI, scifi.scifi_x, scifi.scifi_z, ids, dx_dy)
        if self._makes(_MUON):
            self.hits["Muon"] = self._hits(_MUON, muon.muon_x, muon.muon_y, muon.muon_z, muon.muon_tile)
        continued: set[int] = set()
        long_tracks = self._long_tracks(continued) if self._makes(_LONG) else []
        downstream, self.downstream_v0s = list[SceneTrack](), tuple[SceneDownstreamV0, ...]()
        if self._makes(DOWNSTREAM_COLUMNS):
            downstream = downstream_tracks(workspace, self.hits, self.strips, len(long_tracks))
            self.downstream_v0s = downstream_v0s(workspace, downstream, len(long_tracks))
        self.stubs: tuple[SceneStub, ...] = muon_stubs(workspace) if self._makes(STUB_COLUMNS) else ()
        self.tracks: tuple[SceneTrack, ...] = (*long_tracks, *downstream, *self._velo_tracks(continued))
        self.vertices = self._vertices()
        self.decays = self._decays() if self._makes(_DECAYS) else ()
        self.cells, self.clusters = SceneCells.none(), tuple[SceneCluster, ...]()
        if self._makes(_CELLS):
            self.cells = self._cells(geometry[ecal.ecal_geometry.name].view(ecal.ECAL_GEOMETRY.dtype)[0])
            self.clusters = self._clusters()

    def _makes(self, columns: Sequence[Column]) -> bool:
        return self._columns.issuperset(columns)

    def _of_hits(self, columns: Sequence[Column], column: Column) -> NDArray[Any]:
        """A column of the hits of a detector, whose `columns` begin with offset and count. The event is the only one,
        so its hits begin at 0."""
        return self._workspace.fetch(column.name, int(self._workspace.fetch(columns[1].name, 1)[0]))

    def _hits(self, columns: Sequence[Column], x: Column, y: Column, z: Column, ids: Column) -> SceneHits:
        places = [self._of_hits(columns, column).astype(np.float64) for column in (x, y, z)]
        numbers = self._of_hits(columns, ids).astype(np.uint32)
        return SceneHits(points=np.stack(places, axis=1), track=np.full(len(numbers), NO_TRACK), ids=numbers)

    def _add_strips(
        self,
        detector: str,
        columns: Sequence[Column],
        x: Column,
        z: Column,
        ids: NDArray[np.uint32],
        dx_dy: NDArray[np.floating],
    ) -> None:
        at_x, at_z = (self._of_hits(columns, column).astype(np.float64) for column in (x, z))
        self.strips[detector] = Strips(at_x, at_z, dx_dy.astype(np.float64))
        self.hits[detector] = SceneHits(
            points=np.stack([at_x, np.full(len(at_x), np.nan), at_z], axis=1),
            track=np.full(len(at_x), NO_TRACK),
            ids=ids,
        )

    def _long_tracks(self, continued: set[int]) -> list[SceneTrack]:
        of = Objects(self._workspace, long.long_tracks, long.long_count)
        of_velo = Objects(self._workspace, velo.tracks, velo.track_count)
        velo_hits, velo_counts = of_velo(velo.track_hits), of_velo(velo.track_hit_count)
        beam = {name: of_velo(column).astype(np.float64) for name, column in velo.beamline_state.items()}
        velo_track = of(long.long_velo_track).astype(np.int64)
        states = np.stack([of(long.long_state[name]).astype(np.float64) for name in ("x", "y", "tx", "ty")], axis=1)
        hits = {"UT": of(long.long_ut_hits), "SciFi": of(long.long_hits), "Muon": of(muon.long_muon_hits)}
        qop = of(kalman.long_fitted_qop).astype(np.float64)
        ip, ip_chi2, chi2, ghost_probability = (
            of(column).tolist()
            for column in (kalman.long_ip, kalman.long_ip_chi2, kalman.long_full_chi2, kalman.long_ghost_probability)
        )
        is_muon = of(muon.long_is_muon) != 0
        eop, is_electron = [np.nan] * len(qop), [0] * len(qop)
        if self._makes(_ELECTRONS):
            eop, is_electron = (of(column).tolist() for column in _ELECTRONS)
        tracks = []
        for i, row in enumerate(velo_track.tolist()):
            continued.add(row)
            used = {"VELO": velo_hits[row, : velo_counts[row]].astype(np.int64)}
            for detector, of_tracks in hits.items():
                places = of_tracks[i].astype(np.int64)
                used[detector] = places[places != scifi.NO_HIT]
            if not is_muon[i]:
                used["Muon"] = used["Muon"][:0]
            x, y, tx, ty = states[i].tolist()
            beam_y, beam_ty, beam_z = (float(beam[name][row]) for name in ("y", "ty", "z"))

            line = long_line(
                self._velo_line(used["VELO"]),
                self._crossings("UT", used["UT"], straight(beam_y, beam_ty, beam_z), i),
                self._crossings("SciFi", used["SciFi"], straight(y, ty, long.Z_END_SCIFI), i),
                (x, y, tx, ty),
                bool(is_muon[i]),
            )
            for detector in ("VELO", "Muon"):
                self.hits[detector].track[used[detector]] = i
            p = 1 / max(abs(float(qop[i])), 1e-9)
            direction = np.array([beam["tx"][row], beam["ty"][row]])
            slope = max(float(np.hypot(*direction)), 1e-9)
            tracks.append(
                SceneTrack(
                    kind=LONG_PART,
                    line=line,
                    eta=float(np.arcsinh(1 / slope)),
                    phi=float(np.arctan2(direction[1], direction[0])),
                    charge=1 if qop[i] > 0 else -1,
                    p=p,
                    pt=p * slope / float(np.hypot(1, slope)),
                    is_muon=bool(is_muon[i]),
                    eop=eop[i],
                    is_electron=bool(is_electron[i]),
                    hits=tuple((name, len(places)) for name, places in used.items() if len(places)),
                    ip=ip[i],
                    ip_chi2=ip_chi2[i],
                    chi2=chi2[i],
                    ghost_probability=ghost_probability[i],
                )
            )
        return tracks

    def _crossings(self, detector: str, hits: NDArray[np.int64], y_at: LineInZ, track: int) -> Float64Array:
        if detector not in self.strips or not len(hits):
            return np.empty((0, 3))
        points = self.strips[detector].at(hits, y_at)
        of_detector = self.hits[detector]
        order = hits[np.argsort(self.strips[detector].z[hits])]
        of_detector.points[order] = points
        of_detector.track[order] = track
        return points

    def _velo_line(self, hits: NDArray[np.int64]) -> Float64Array:
        points = self.hits["VELO"].points[hits]
        ascending: Float64Array = points[np.argsort(points[:, 2])]
        return ascending

    def _velo_tracks(self, continued: set[int]) -> list[SceneTrack]:
        of = Objects(self._workspace, velo.tracks, velo.track_count)
        hits, counts, backward = of(velo.track_hits), of(velo.track_hit_count), of(velo.track_backward) != 0
        ip, ip_chi2 = of(velo.track_ip), of(velo.track_ip_chi2)
        tx, ty = (of(velo.beamline_state[name]).astype(np.float64) for name in ("tx", "ty"))
        flies = np.where(backward, -1.0, 1.0)
        eta = flies * np.arcsinh(1 / np.maximum(np.hypot(tx, ty), 1e-9))
        phi = np.arctan2(flies * ty, flies * tx)
        return [
            SceneTrack(
                kind=VELO_PART,
                line=self._velo_line(hits[row, : counts[row]].astype(np.int64)),
                eta=float(eta[row]),
                phi=float(phi[row]),
                backward=bool(backward[row]),
                ip=float(ip[row]),
                ip_chi2=float(ip_chi2[row]),
                hits=(("VELO", int(counts[row])),),
            )
            for row in range(len(counts))
            if row not in continued
        ]

    def _cells(self, geometry: np.void) -> SceneCells:
        adc = self._workspace.fetch(ecal.ecal_adc.name, ecal.ecal_adc.width)
        number = np.flatnonzero(adc > _LEAST_ADC)
        width = geometry["module_size"] / (1.0 + np.searchsorted(FIRST_CELLS[1:], number, side="right"))
        front = geometry["planes"][0]
        return SceneCells(
            number=number,
            place=np.stack([geometry[axis][number] for axis in "xy"], axis=1).astype(np.float64),
            half=0.5 * width.astype(np.float64),
            energy=(geometry["gain"][number] * (adc[number] - geometry["pedestal"])).astype(np.float64),
            z=float(-front[3] / front[2]),
        )

    def _clusters(self) -> tuple[SceneCluster, ...]:
        of = Objects(self._workspace, ecal.ecal_clusters, ecal.cluster_count)
        columns = (*ecal.cluster_position.values(), ecal.cluster_energy, ecal.cluster_et, ecal.cluster_e19)
        return tuple(
            SceneCluster(place=(x, y, SHOWER_MAXIMUM_Z), energy=energy, et=et, e19=e19)
            for x, y, energy, et, e19 in zip(*(of(column).tolist() for column in columns), strict=True)
        )

    def _vertices(self) -> tuple[SceneVertex, ...]:
        n = int(self._workspace.fetch(pv_count.name, 1)[0])
        found = self._workspace.fetch(vertices.name, n)
        return tuple(
            SceneVertex(
                place=(float(it["x"]), float(it["y"]), float(it["z"])),
                errors=_errors(it["c00"], it["c11"], it["c22"]),
                tracks=float(it["n_tracks"]),
            )
            for it in found
        )

    def _decays(self) -> tuple[SceneDecay, ...]:
        of = Objects(self._workspace, secondary.two_track_vertices, secondary.vertex_count)
        values: Mapping[str, list[float]] = {
            column.name: of(column).astype(np.float64).tolist() for column in _DECAYS[3:]
        }
        tracks = of(secondary.vertex_tracks_of).tolist()
        kinds = of(secondary.vertex_kind).tolist()

        def value(column: Column, i: int) -> float:
            return values[column.name][i]

        position, covariance = secondary.vertex_position, secondary.vertex_covariance
        flight = secondary.vertex_flight
        return tuple(
            SceneDecay(
                place=(value(position["x"], i), value(position["y"], i), value(position["z"], i)),
                errors=_errors(*(value(covariance[name], i) for name in ("c00", "c11", "c22"))),
                tracks=(pair[0], pair[1]),
                kinds=tuple(text for bit, text in _KINDS.items() if kinds[i] & bit),
                chi2=value(secondary.vertex_fit["chi2"], i),
                pt=value(secondary.vertex_momentum["pt"], i),
                flight=value(flight["fd"], i),
                flight_chi2=value(flight["fd_chi2"], i),
                corrected_mass=value(flight["m_corr"], i),
                masses=tuple((text, value(secondary.vertex_masses[name], i)) for text, name in _MASSES.items()),
            )
            for i, pair in enumerate(tracks)
        )


def _errors(*variances: float) -> tuple[float, float, float]:
    x, y, z = (float(np.sqrt(max(float(variance), 0.0))) for variance in variances)
    return x, y, z
