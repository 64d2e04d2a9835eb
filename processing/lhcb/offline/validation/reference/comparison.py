"""Our events against dumps of them: how much of each quantity of a dump we have, and by how much it differs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.geometry.ut import UtGeometry
from hltnode.processing.lhcb.muon import collections as muon
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import ReconstructedBatch
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.offline.validation.checker.vertices import MAX_SIGMA, MIN_TRACKS
from hltnode.processing.lhcb.offline.validation.reference import dumps
from hltnode.processing.lhcb.offline.validation.reference.dumps import DumpError, ReferenceDump
from hltnode.processing.offline.arrays import Mask
from hltnode.processing.offline.checks.counts import ratio
from hltnode.processing.offline.workspace_columns import Objects
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.lhcb.banks.ut import decode_ut
from hltnode.protocol.lhcb.lhcb_id import FT_TYPE, UT_TYPE, VP_TYPE, detector_type, in_2022_scheme, without_orientation
from hltnode.protocol.lhcb.truth_columns import PARTICLE, McParticleColumns, decode_particle_columns
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

MUON_COLUMNS = (
    *(muon.muon_hit_offset, muon.muon_count, muon.muon_station_offset, muon.muon_tile),
    *(muon.muon_x, muon.muon_y, muon.muon_z, muon.muon_dx, muon.muon_dy),
)
"""Read of the muon hits if the sequence has them."""

# A muon hit of a dump is found if ours is this near in x and y (mm): pads are millimetres apart.
_MUON_DISTANCE = 0.5
# With less of the hits of an event than this the dump is that of another event: the same event in another encoding
# has nearly all of them, another one hardly any.
_LEAST_FOUND = 0.5
_STAGES = {Stage.VELO: "velo_tracks", Stage.UT: "ut_tracks", Stage.LONG: "forward_tracks"}

QUANTITIES = {
    "velo_hits": "VELO hits of its particles",
    "ut_hits": "UT hits",
    "scifi_hits": "SciFi hits",
    "muon_hits": "muon hits",
    "muon_ids": "muon tile ids",
    "particles": "particles in the truth",
    "velo_tracks": "its tracks, as VELO tracks",
    "ut_tracks": "its tracks with UT hits, as VELO-UT tracks",
    "forward_tracks": "its tracks, as long tracks",
    "true_forward_tracks": "of these the ones that belong to a long particle",
    "vertices": f"collisions of {MIN_TRACKS} tracks or more, as primary vertices",
}
"""Names in JSON, and text."""


@dataclass(slots=True)
class Quantity:
    """`total` of the dumps, `found` of these by us, `ours` in all; differences of those found, by name with unit."""

    total: int = 0
    found: int = 0
    ours: int = 0
    differences: dict[tuple[str, str], list[NDArray[np.float64]]] = field(default_factory=dict)

    def add(self, total: int, found: int, ours: int) -> None:
        self.total += total
        self.found += found
        self.ours += ours

    def differ(self, name: str, unit: str, values: NDArray[Any]) -> None:
        """Differences, ours less that of the dump, in `unit`."""
        self.differences.setdefault((name, unit), []).append(np.asarray(values, dtype=np.float64))

    def result(self) -> dict[str, Any]:
        """The JSON object; median and largest are of absolute values."""
        differences = {}
        for (name, unit), parts in self.differences.items():
            values = np.abs(np.concatenate(parts))
            if len(values):
                differences[name] = {"unit": unit, "median": float(np.median(values)), "largest": float(values.max())}
        return {
            "total": self.total,
            "found": self.found,
            "rate": ratio(self.found, self.total),
            "ours": self.ours,
            "differences": differences,
        }


class ReferenceComparison:
    """Compares events with the dumps of a folder; `result` and `lines` give the sums.

    geometry: the folder of geometry files that the events are reconstructed with, None for the built-in detector.
    Raises DumpError for a folder without dumps, a dump that cannot be read, one that is of another event.
    """

    def __init__(self, folder: Path, geometry: Path | None) -> None:
        self.dump = ReferenceDump(folder)
        self._ut = UtGeometry.builtin() if geometry is None else UtGeometry.load(geometry)
        self._scifi = SciFiGeometry.builtin() if geometry is None else SciFiGeometry.load(geometry)
        self.events = 0
        self.events_without_dump = 0
        self.quantities: dict[str, Quantity] = {}
        self._known = set(self.dump.events())
        self._first_missing: tuple[int, int] | None = None

    def check_used(self) -> None:
        """Raises DumpError if the folder had a dump of none of the events."""
        if self.events:
            return
        known = self.dump.events()
        first, last, missing = (
            "none" if event is None else f"run {event[0]} event {event[1]}"
            for event in (*((known[0], known[-1]) if known else (None, None)), self._first_missing)
        )
        raise DumpError(
            f"{self.dump.folder}: the dumps are of other events: they go from {first} to {last}, "
            f"the first event of the input without a dump is {missing}"
        )

    def add(self, events: Sequence[Sequence[RawBank]], found: ReconstructedBatch, workspace: Workspace) -> None:
        """Compare the events of a batch."""
        muon_hits = _MuonHits(workspace) if set(MUON_COLUMNS) <= set(workspace.sequence.columns) else None
        for number, banks in enumerate(events):
            name = _run_and_event(banks)
            if name is None or name not in self._known:
                self.events_without_dump += 1
                self._first_missing = self._first_missing or name
            elif not found.is_cut[number]:
                self.events += 1
                self._add_hits(name, banks, found.hits[number])
                if muon_hits is not None:
                    self._add_muons(name, muon_hits.of_event(number))
                self._add_particles(name, banks)
                ours = {stage: _tracks_of(found, stage, number) for stage in found.tracks}
                self._add_tracks(name, banks, ours)
                self._add_vertices(name, found.pvs[number])

    def _quantity(self, name: str) -> Quantity:
        return self.quantities.setdefault(name, Quantity())

    def _add_hits(self, event: tuple[int, int], banks: Sequence[RawBank], hits: dict[int, NDArray[np.uint32]]) -> None:
        path = self.dump.path(dumps.PARTICLES, *event)
        if path is not None:
            ids = in_2022_scheme(dumps.read_particles(path).velo_ids)
            self._add_ids("velo_hits", path, ids, hits[VP_TYPE])
        versions = {bank.type: bank.version for bank in banks}
        for name, of_type, kind in (
            ("ut_hits", UT_TYPE, LhcbBankType.UT),
            ("scifi_hits", FT_TYPE, LhcbBankType.FT_CLUSTER),
        ):
            path = self.dump.path(dumps.BANKS[kind], *event)
            if path is None or of_type not in hits or kind not in versions:
                continue
            dumped = dumps.read_banks(path, kind, versions[kind])
            try:
                if kind is LhcbBankType.UT:
                    ids = self._ut.hits(decode_ut(dumped)).lhcb_id
                else:
                    ids = self._scifi.hits(decode_scifi(dumped)).lhcb_id
            except ProtocolError as error:
                raise DumpError(f"{path}: {error}") from error
            self._add_ids(name, path, ids, hits[of_type])

    def _add_ids(self, name: str, path: Path, ids: NDArray[np.uint32], ours: NDArray[np.uint32]) -> None:
        ids = np.unique(without_orientation(ids))
        self._count(name, path, len(ids), int(np.isin(ids, without_orientation(ours)).sum()), len(ours))

    def _count(self, name: str, path: Path, total: int, found: int, ours: int) -> None:
        if found < _LEAST_FOUND * total:
            raise DumpError(
                f"{path}: the dump is that of another event: {found} of its {total} {QUANTITIES[name]} are in the event"
            )
        self._quantity(name).add(total, found, ours)

    def _add_muons(self, event: tuple[int, int], ours: dict[str, NDArray[Any]]) -> None:
        path = self.dump.path(dumps.MUON_HITS, *event)
        if path is not None:
            known = dumps.read_muon_hits(path)
            far = np.maximum(*(np.abs(ours[axis] - known[axis][:, None]) for axis in ("x", "y")))
            far[ours["station"] != known["station"][:, None]] = np.inf
            nearest = far.argmin(axis=1) if far.size else np.empty(0, np.int64)
            near = far.min(axis=1, initial=np.inf) < _MUON_DISTANCE
            self._count("muon_hits", path, len(near), int(near.sum()), len(ours["x"]))
            for name in ("x", "y", "z", "dx", "dy"):
                self._quantity("muon_hits").differ(name, "mm", ours[name][nearest[near]] - known[name][near])
        path = self.dump.path(dumps.MUON_COORDINATES, *event)
        if path is not None:
            tiles = np.unique(dumps.read_muon_tiles(path))
            self._count("muon_ids", path, len(tiles), int(np.isin(tiles, ours["tile"]).sum()), len(ours["tile"]))

    def _add_particles(self, event: tuple[int, int], banks: Sequence[RawBank]) -> None:
        path = self.dump.path(dumps.PARTICLES, *event)
        if path is None or not any(bank.type == LhcbBankType.MC_TRACKS for bank in banks):
            return
        try:
            ours = decode_particle_columns(banks).values
        except ProtocolError:
            # The checker names and counts it.
            return
        known = dumps.read_particles(path).values
        _, mine, its = np.intersect1d(ours["key"], known["key"], return_indices=True)
        same = ours["pid"][mine] == known["pid"][its]
        mine, its = mine[same], its[same]
        self._count("particles", path, len(known), len(its), len(ours))
        quantity = self._quantity("particles")
        quantity.differ("p", "%", 100 * (ours["p"][mine] / known["p"][its] - 1))
        quantity.differ("eta", "", ours["eta"][mine] - known["eta"][its])

    def _add_tracks(self, event: tuple[int, int], banks: Sequence[RawBank], ours: Mapping[Stage, TrackTable]) -> None:
        path = self.dump.path(dumps.FORWARD_TRACKS, *event)
        if path is None:
            return
        its = dumps.read_tracks(path)
        table = _as_particles(its)
        has_ut = np.zeros(len(its), dtype=bool)
        has_ut[np.repeat(np.arange(len(its)), its.n_ids)[detector_type(its.ids) == UT_TYPE]] = True
        for stage, tracks in ours.items():
            # UT channels of the dumps are numbered otherwise: VELO and SciFi hits say which track it is.
            matches = match_tracks(_without_ut(tracks), table)
            wanted = has_ut if stage is Stage.UT else np.ones(len(its), dtype=bool)
            its_row, first = np.unique(matches.particle, return_index=True)
            track = matches.track[first][wanted[its_row]]
            its_row = its_row[wanted[its_row]]
            quantity = self._quantity(_STAGES[stage])
            quantity.add(int(wanted.sum()), len(its_row), len(tracks))
            if stage is Stage.LONG:
                is_true = _belong_to_long_particles(its, banks)
                of_true = self._quantity("true_forward_tracks")
                of_true.add(int(is_true.sum()), int(is_true[its_row].sum()), len(tracks))
            if tracks.eta is not None and its.eta is not None:
                quantity.differ("eta", "", tracks.eta[track] - its.eta[its_row])
            if tracks.p is not None and its.p is not None:
                quantity.differ("p", "%", 100 * (tracks.p[track] / its.p[its_row] - 1))

    def _add_vertices(self, event: tuple[int, int], pvs: NDArray[np.float32]) -> None:
        path = self.dump.path(dumps.VERTICES, *event)
        if path is None:
            return
        known = [vertex for vertex in dumps.read_vertices(path) if vertex.n_tracks >= MIN_TRACKS]
        place = np.array([(vertex.x, vertex.y, vertex.z) for vertex in known]).reshape(-1, 3)
        ours = pvs.astype(np.float64).reshape(-1, 6)
        far = np.abs(place[:, 2, None] - ours[:, 2])
        nearest = far.argmin(axis=1) if far.size else np.zeros(len(place), np.int64)
        near = far.min(axis=1, initial=np.inf) < (MAX_SIGMA * np.sqrt(ours[nearest, 5]) if len(ours) else 0.0)
        quantity = self._quantity("vertices")
        quantity.add(len(place), int(near.sum()), len(ours))
        for i, axis in enumerate("xyz"):
            quantity.differ(axis, "µm", 1000 * (ours[nearest[near], i] - place[near, i]))

    def result(self) -> dict[str, Any]:
        """The JSON object "reference"."""
        return {
            "events": self.events,
            "events_without_dump": self.events_without_dump,
            "quantities": {name: self.quantities[name].result() for name in QUANTITIES if name in self.quantities},
        }


class _MuonHits:
    """The muon hits of a batch as columns."""

    def __init__(self, workspace: Workspace) -> None:
        of = Objects(workspace, muon.muon_hits, muon.muon_count)
        columns = {"x": muon.muon_x, "y": muon.muon_y, "z": muon.muon_z, "dx": muon.muon_dx, "dy": muon.muon_dy}
        self._columns = {name: of(column) for name, column in (*columns.items(), ("tile", muon.muon_tile))}
        self._event = of.event
        first = workspace.fetch(muon.muon_station_offset.name, workspace.n_events * muon.STATION_STRIDE)
        self._first_of_station = first.reshape(-1, muon.STATION_STRIDE)

    def of_event(self, event: int) -> dict[str, NDArray[Any]]:
        begin, end = np.searchsorted(self._event, (event, event + 1))
        columns = {name: values[begin:end] for name, values in self._columns.items()}
        inner = self._first_of_station[event, 1:4]
        return {**columns, "station": np.searchsorted(inner, np.arange(end - begin), side="right")}


def _run_and_event(banks: Sequence[RawBank]) -> tuple[int, int] | None:
    for bank in banks:
        if bank.type == BankType.ODIN:
            try:
                odin = decode_odin(bank)
            except ProtocolError:
                return None
            return odin.run, odin.event_id
    return None


def _tracks_of(found: ReconstructedBatch, stage: Stage, event: int) -> TrackTable:
    """The tracks of one event, as those of event 0."""
    return found.tracks[stage].of_kept_events(np.arange(found.n_events) == event)


def _belong_to_long_particles(tracks: TrackTable, banks: Sequence[RawBank]) -> Mask:
    """Whether tracks of one event match a particle in its truth that is reconstructible as a long track."""
    try:
        particles = ParticleTable.of_events([decode_particle_columns(banks)])
    except ProtocolError:
        return np.zeros(len(tracks), dtype=bool)
    matches = match_tracks(_without_ut(tracks), particles)
    found = np.zeros(len(tracks), dtype=bool)
    found[matches.track[particles.is_long[matches.particle]]] = True
    return found


def _without_ut(tracks: TrackTable) -> TrackTable:
    known = detector_type(tracks.ids) != UT_TYPE
    row = np.repeat(np.arange(len(tracks)), tracks.n_ids)
    return TrackTable(event=tracks.event, ids=tracks.ids[known], n_ids=np.bincount(row[known], minlength=len(tracks)))


def _as_particles(tracks: TrackTable) -> ParticleTable:
    """The tracks of a dump in the place of particles, so that ours are matched to them by the same rule."""
    values = np.zeros(len(tracks), dtype=PARTICLE)
    values["key"], values["mother_key"] = np.arange(len(tracks)), -1
    velo, scifi = tracks.hits_of(VP_TYPE), tracks.hits_of(FT_TYPE)
    no_ut = (np.empty(0, np.uint32), np.zeros(len(tracks), np.int64))
    return ParticleTable.of_events([McParticleColumns(values, velo.ids, velo.n_ids, *no_ut, scifi.ids, scifi.n_ids)])
