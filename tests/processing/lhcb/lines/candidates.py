"""Candidates of lines as plain records, and the columns that a kernel would hold for them.

Numbers are float32, so that a comparison with a Python number is one in single precision. Units: MeV, mm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.algorithms.decode_odin import ODIN_DATA
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.calorimeter.collections import (
    MAX_CLUSTERS_PER_EVENT,
    MAX_DIELECTRONS_PER_EVENT,
    MAX_PHOTON_PAIRS_PER_EVENT,
)
from hltnode.processing.lhcb.jets.collections import MAX_JETS_PER_EVENT
from hltnode.processing.lhcb.lines.inputs.event_fields import EVENT_WORDS
from hltnode.processing.lhcb.muon.collections import MAX_STUBS_PER_EVENT
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS, PRIMARY_VERTEX
from hltnode.processing.lhcb.primary_vertices.halves.collections import MAX_HALF_PAIRS
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT
from hltnode.processing.lhcb.secondary_vertices.collections import (
    MAX_V0_PAIRS_PER_EVENT,
    MAX_VERTICES_PER_EVENT,
    VertexKind,
)
from hltnode.processing.lhcb.secondary_vertices.downstream.collections import MAX_V0S_PER_EVENT, DownstreamV0Kind
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.velo.collections import NO_PV
from hltnode.processing.selection.lines.line_type import LineType
from tests.processing.selection.line_evaluators import Case

VELO_PLACES = 4
"""Places for VELO tracks in an event."""


class _Single:
    """A record whose floats become float32."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            if isinstance(value := getattr(self, field.name), float):
                object.__setattr__(self, field.name, np.float32(value))


@dataclass(frozen=True)
class Pv(_Single):
    z: float = 0.0


UPSTREAM = Pv(-1000.0)


@dataclass(frozen=True)
class VeloTrack(_Single):
    n_hits: int = 5
    z: float = 0.0
    tx: float = 0.2
    ty: float = 0.1
    backward: bool = False
    large_clusters: int = 0


@dataclass(frozen=True)
class Track(_Single):
    """A long track; its chi2 fails every line."""

    p: float = 20000.0
    pt: float = 1000.0
    phi: float = 0.1
    positive: bool = True
    chi2: float = 1e6
    ip: float = 0.0
    ip_chi2: float = 0.0
    is_muon: bool = False
    pv: Pv | None = None
    is_electron: bool = False
    electron_nn: float = 0.0
    brem_energy: float = 0.0
    brem_et: float = 0.0

    @property
    def brem_pt(self) -> float:
        """The transverse momentum with bremsstrahlung."""
        return float(self.pt) + float(self.brem_et)

    @property
    def brem_p(self) -> float:
        """The momentum with bremsstrahlung."""
        return float(self.p) + float(self.brem_energy)

    @property
    def eta(self) -> float:
        """The pseudorapidity."""
        return math.acosh(float(self.p) / float(self.pt))

    @property
    def direction(self) -> tuple[float, float, float]:
        """The unit vector along the momentum."""
        sine = float(self.pt) / float(self.p)
        return sine * math.cos(self.phi), sine * math.sin(self.phi), math.sqrt(1 - sine * sine)


UNSELECTED = Track()


@dataclass(frozen=True)
class Vertex(_Single):
    """A vertex of two tracks that is a candidate of no line."""

    track1: Track = UNSELECTED
    track2: Track = UNSELECTED
    pv: Pv | None = None
    displaced: bool = False
    ks: bool = False
    lambda0: bool = False
    dimuon: bool = False
    same_sign: bool = False
    x: float = 0.0
    y: float = 0.0
    z: float = 100.0
    chi2: float = 1.0
    doca: float = 0.01
    pt: float = 1e5
    ip: float = 0.1
    fd_chi2: float = 1e4
    eta: float = 3.0
    dira: float = 0.9999
    m_corr: float = 5000.0
    m_pipi: float = 1.0
    m_kpi: float = 1.0
    m_pik: float = 1.0
    m_kk: float = 1.0
    m_ppi: float = 1.0
    m_pip: float = 1.0
    m_mumu: float = 1.0
    min_pt: float = 1e5
    sum_pt: float = 2e5
    min_p: float = 1e6
    min_ip: float = 1.0
    min_ip_chi2: float = 1e4

    @property
    def kind(self) -> int:
        """The bits of VertexKind."""
        kinds = {
            VertexKind.VERTEX_DISPLACED: self.displaced,
            VertexKind.VERTEX_KS: self.ks,
            VertexKind.VERTEX_LAMBDA: self.lambda0,
            VertexKind.VERTEX_DIMUON: self.dimuon,
            VertexKind.VERTEX_SAME_SIGN: self.same_sign,
        }
        return sum(int(bit) for bit, holds in kinds.items() if holds)


VERTEX_NUMBERS = tuple(field.name for field in fields(Vertex) if field.type == "float")


@dataclass(frozen=True)
class V0Pair:
    first: Vertex
    second: Vertex


@dataclass(frozen=True)
class Cluster(_Single):
    """A cluster of the calorimeter; it is no photon."""

    et: float = 0.0
    e19: float = 0.0
    seed: int = 0

    @property
    def region(self) -> str:
        """The region of its seed."""
        return "outer" if self.seed < 2688 else "middle" if self.seed < 4480 else "inner"


NO_PHOTON = Cluster()


@dataclass(frozen=True)
class PhotonPair(_Single):
    """Two photons that are a candidate of no line."""

    first: Cluster = NO_PHOTON
    second: Cluster = NO_PHOTON
    mass: float = 0.0
    pt: float = 1e5
    eta: float = 3.0


@dataclass(frozen=True)
class Dielectron(_Single):
    """Two electrons that are a candidate of no line: their vertex is far upstream."""

    track1: Track = UNSELECTED
    track2: Track = UNSELECTED
    pv: Pv | None = None
    same_sign: bool = False
    x: float = 0.0
    y: float = 0.0
    z: float = -1000.0
    chi2: float = 1.0
    doca: float = 0.01
    ip: float = 0.1
    mass: float = 100.0
    m_pipi: float = 300.0


DIELECTRON_NUMBERS = tuple(field.name for field in fields(Dielectron) if field.type == "float")


@dataclass(frozen=True)
class DownstreamV0(_Single):
    """A vertex of two downstream tracks that is a candidate of no line."""

    ks: bool = False
    lambda0: bool = False
    photon: bool = False
    chi2: float = 1.0
    ip: float = 1.0
    pt: float = 1e4
    min_pt: float = 1e3
    m_pipi: float = 1.0
    m_ppi: float = 1.0
    m_ee: float = 100.0

    @property
    def kind(self) -> int:
        """The bits of DownstreamV0Kind."""
        kinds = {
            DownstreamV0Kind.DOWNSTREAM_KS: self.ks,
            DownstreamV0Kind.DOWNSTREAM_LAMBDA: self.lambda0,
            DownstreamV0Kind.DOWNSTREAM_PHOTON: self.photon,
        }
        return sum(int(bit) for bit, holds in kinds.items() if holds)


DOWNSTREAM_V0_NUMBERS = tuple(field.name for field in fields(DownstreamV0) if field.type == "float")


@dataclass(frozen=True)
class MuonStub(_Single):
    """A stub of the muon stations; its chi2 fails every line."""

    chi2_x: float = 1e6
    chi2_y: float = 1e6


@dataclass(frozen=True)
class Jet(_Single):
    """A jet that is a candidate of no line."""

    pt: float = 0.0


@dataclass(frozen=True)
class HalfPair(_Single):
    """Vertices of both VELO halves that are a candidate of no line."""

    n_tracks: float = 0.0


@dataclass(frozen=True)
class Event:
    event_type: int = 0
    crossing_type: int = 3
    orbit: int = 0
    tae_central: int = 0
    tae_half_window: int = 0
    has_odin: bool = True
    passes_gec: bool = True
    n_velo_clusters: int = 0
    velo_tracks: Sequence[VeloTrack] = ()
    primary_vertices: Sequence[Pv] = ()
    long_tracks: Sequence[Track] = ()
    vertices: Sequence[Vertex] = ()
    pairs: Sequence[V0Pair] = ()
    clusters: Sequence[Cluster] = ()
    photon_pairs: Sequence[PhotonPair] = ()
    dielectrons: Sequence[Dielectron] = ()
    downstream_v0s: Sequence[DownstreamV0] = ()
    stubs: Sequence[MuonStub] = ()
    jets: Sequence[Jet] = ()
    half_pairs: Sequence[HalfPair] = ()
    ecal_max_adc: int = 0
    ecal_energy: float = 0.0

    @property
    def all_pvs(self) -> list[Pv]:
        """All primary vertices. The first one is far upstream and belongs to no candidate."""
        owners: list[Track | Vertex | Dielectron] = [*self.long_tracks, *self.vertices, *self.dielectrons]
        return [UPSTREAM, *self.primary_vertices, *(owner.pv for owner in owners if owner.pv is not None)]


Candidate = (
    Event | Track | Vertex | V0Pair | Cluster | PhotonPair | Dielectron | DownstreamV0 | MuonStub | Jet | HalfPair
)


def event_with(candidate: Candidate) -> Event:
    """An event with a candidate, behind others that no line selects."""
    match candidate:
        case Cluster():
            return Event(clusters=(NO_PHOTON, candidate))
        case PhotonPair(first, second):
            return Event(clusters=(NO_PHOTON, first, second), photon_pairs=(PhotonPair(), candidate))
        case Dielectron():
            return Event(long_tracks=_tracks_of(candidate), dielectrons=(Dielectron(), candidate))
        case DownstreamV0():
            return Event(downstream_v0s=(DownstreamV0(), candidate))
        case MuonStub():
            return Event(stubs=(MuonStub(), candidate))
        case Jet():
            return Event(jets=(Jet(), candidate))
        case HalfPair():
            return Event(half_pairs=(HalfPair(), candidate))
        case Track():
            return Event(long_tracks=(UNSELECTED, candidate))
        case Vertex():
            return Event(long_tracks=_tracks_of(candidate), vertices=(Vertex(), candidate))
        case V0Pair(first, second):
            return Event(long_tracks=_tracks_of(first, second), vertices=(Vertex(), first, second), pairs=(candidate,))
        case _:
            return candidate


def _tracks_of(*vertices: Vertex | Dielectron) -> tuple[Track, ...]:
    return (UNSELECTED, *(track for vertex in vertices for track in (vertex.track1, vertex.track2)))


def changed(record: Any, changes: Mapping[str, Any]) -> Any:
    """The record with other values of its fields; "track1.pt" is the field `pt` of its field `track1`."""
    for path, value in changes.items():
        name, _, rest = path.partition(".")
        record = replace(record, **{name: changed(getattr(record, name), {rest: value}) if rest else value})
    return record


def case_of(lines: Sequence[LineType], events: Sequence[Event]) -> Case:
    """The events as columns, for the lines."""
    n = len(events)
    limits = BatchLimits(events=n, lines=len(lines), input_bytes=8 * VELO_PLACES * n)
    odin = np.zeros(n, ODIN_DATA.dtype)
    flags = np.zeros(n, np.uint32)
    pvs = np.zeros((n, MAX_PVS), PRIMARY_VERTEX.dtype)
    velo, long, vertices, pairs, clusters, photon_pairs, dielectrons, downstream, stubs, jets, half_pairs = (
        _Table(n, most) for most in (VELO_PLACES, *_MOST)
    )
    counts = np.zeros((n, 13), np.uint32)
    for number, event in enumerate(events):
        for name in ("event_type", "crossing_type", "orbit", "tae_central", "tae_half_window"):
            odin[name][number] = getattr(event, name)
        flags[number] = (0 if event.has_odin else EventFlag.ODIN_ERROR) + (
            0 if event.passes_gec else GLOBAL_EVENT_CUT.mask
        )
        places = _Places(event)
        pvs["z"][number, : len(places.pvs)] = [pv.z for pv in places.pvs]
        for i, velo_track in enumerate(event.velo_tracks):
            velo.fill(number, i, hit_count=velo_track.n_hits, z=velo_track.z, tx=velo_track.tx, ty=velo_track.ty)
            velo.fill(number, i, backward=velo_track.backward, large_clusters=velo_track.large_clusters)
        for i, track in enumerate(event.long_tracks):
            long.fill(number, i, **_track_numbers(track), pv=places.pv(track.pv))
        for i, vertex in enumerate(event.vertices):
            tracks = (places.track(vertex.track1), places.track(vertex.track2))
            numbers = {name: getattr(vertex, name) for name in VERTEX_NUMBERS}
            vertices.fill(number, i, **numbers, kind=vertex.kind, pv=places.pv(vertex.pv), tracks=tracks)
        for i, pair in enumerate(event.pairs):
            pairs.fill(number, i, vertices=(places.vertex(pair.first), places.vertex(pair.second)))
        for i, cluster in enumerate(event.clusters):
            clusters.fill(number, i, et=cluster.et, e19=cluster.e19, seed=cluster.seed)
        for i, photons in enumerate(event.photon_pairs):
            both = (_number(photons.first, event.clusters), _number(photons.second, event.clusters))
            photon_pairs.fill(number, i, mass=photons.mass, pt=photons.pt, eta=photons.eta, clusters=both)
        for i, electrons in enumerate(event.dielectrons):
            both = (places.track(electrons.track1), places.track(electrons.track2))
            numbers = {name: getattr(electrons, name) for name in DIELECTRON_NUMBERS}
            dielectrons.fill(
                number, i, **numbers, same_sign=electrons.same_sign, pv=places.pv(electrons.pv), tracks=both
            )
        for i, v0 in enumerate(event.downstream_v0s):
            numbers = {name: getattr(v0, name) for name in DOWNSTREAM_V0_NUMBERS}
            downstream.fill(number, i, **numbers, kind=v0.kind)
        for i, stub in enumerate(event.stubs):
            stubs.fill(number, i, chi2_x=stub.chi2_x, chi2_y=stub.chi2_y)
        for i, jet in enumerate(event.jets):
            jets.fill(number, i, pt=jet.pt)
        for i, half_pair in enumerate(event.half_pairs):
            half_pairs.fill(number, i, n_tracks=half_pair.n_tracks)
        collections = (
            *(event.velo_tracks, places.pvs, event.long_tracks, event.vertices, event.pairs),
            *(event.clusters, event.photon_pairs, event.dielectrons, event.downstream_v0s, event.stubs),
            *(event.jets, event.half_pairs),
        )
        counts[number] = (event.n_velo_clusters, *(len(objects) for objects in collections))
    names = ("velo_clusters", "velo_tracks", "pvs", "long_tracks", "two_track_vertices", "v0_pairs")
    others = ("ecal_clusters", "photon_pairs", "dielectrons", "downstream_v0s", "muon_stubs", "jets", "half_pairs")
    columns = {
        "events.odin": odin,
        "events.flags": flags,
        "velo_clusters.offset": np.arange(n + 1) * 2 * VELO_PLACES,
        "pvs.vertex": pvs.ravel(),
        "velo_tracks.hit_count": velo.column("hit_count"),
        **{f"velo_tracks.{name}": velo.column(name) for name in ("backward", "large_clusters")},
        **{f"velo_beamline.{name}": velo.column(name) for name in ("z", "tx", "ty")},
        **long.columns("long_tracks"),
        **vertices.columns("two_track_vertices"),
        **pairs.columns("v0_pairs"),
        **clusters.columns("ecal_clusters"),
        **photon_pairs.columns("photon_pairs"),
        **dielectrons.columns("dielectrons"),
        **downstream.columns("downstream_v0s"),
        **stubs.columns("muon_stubs"),
        **jets.columns("jets"),
        **half_pairs.columns("half_pairs"),
        "events.ecal_max_adc": np.array([event.ecal_max_adc for event in events], np.uint32),
        "events.ecal_energy": np.array([event.ecal_energy for event in events], np.float32),
        **{f"{name}.count": counts[:, i] for i, name in enumerate((*names, *others))},
    }
    return Case(tuple(line.line() for line in lines), EVENT_WORDS, columns, limits)


_MOST = (
    *(MAX_TRACKS_PER_EVENT, MAX_VERTICES_PER_EVENT, MAX_V0_PAIRS_PER_EVENT),
    *(MAX_CLUSTERS_PER_EVENT, MAX_PHOTON_PAIRS_PER_EVENT, MAX_DIELECTRONS_PER_EVENT),
    *(MAX_V0S_PER_EVENT, MAX_STUBS_PER_EVENT, MAX_JETS_PER_EVENT, MAX_HALF_PAIRS),
)


def _track_numbers(track: Track) -> dict[str, Any]:
    x, y, z = track.direction
    return {
        "beam_tx": x / z,
        "beam_ty": y / z,
        "beam_qop": (1 if track.positive else -1) / float(track.p),
        "chi2": track.chi2,
        "ip": track.ip,
        "ip_chi2": track.ip_chi2,
        "is_muon": track.is_muon,
        "is_electron": track.is_electron,
        "electron_nn": track.electron_nn,
        "brem_energy": track.brem_energy,
        "brem_et": track.brem_et,
    }


class _Places:
    """Numbers of the objects of an event."""

    def __init__(self, event: Event) -> None:
        self._event = event
        self.pvs = event.all_pvs

    def pv(self, pv: Pv | None) -> int:
        return NO_PV if pv is None else _number(pv, self.pvs)

    def track(self, track: Track) -> int:
        return _number(track, self._event.long_tracks)

    def vertex(self, vertex: Vertex) -> int:
        return _number(vertex, self._event.vertices)


def _number(wanted: object, objects: Sequence[object]) -> int:
    return next(i for i, one in enumerate(objects) if one is wanted)


class _Table:
    """Columns of a collection with the same number of places in each event."""

    def __init__(self, n_events: int, most: int) -> None:
        self._shape = (n_events, most)
        self._columns: dict[str, NDArray[Any]] = {}

    def fill(self, event: int, place: int, **values: Any) -> None:
        for name, value in values.items():
            if name not in self._columns:
                self._columns[name] = np.zeros((*self._shape, *np.shape(value)), np.float32)
            self._columns[name][event, place] = value

    def column(self, name: str) -> NDArray[Any]:
        return self._columns[name].ravel()

    def columns(self, collection: str) -> dict[str, NDArray[Any]]:
        return {f"{collection}.{name}": column.ravel() for name, column in self._columns.items()}
