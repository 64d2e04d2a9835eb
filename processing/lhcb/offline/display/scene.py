"""The objects of an event that are drawn: hits, tracks, vertices, cells and clusters of the calorimeter, and the true
particles of a simulated one.

Lengths are in mm, momenta and masses in MeV.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.counted import counted

NO_TRACK = -1

VELO_PART, LONG_PART, DOWNSTREAM_PART = "velo", "long", "downstream"
"""Kinds of tracks: VELO tracks that no long track continues, long tracks, and tracks through UT and SciFi alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneHits:
    """The hits of one detector.

    points: f64[n, 3] = x, y, z; y is NaN where a strip leaves it open, and x then that at y = 0. track: i64[n], the
    long or downstream track that has the hit, or NO_TRACK. ids: u32[n], LHCbIDs; tile ids of muon hits.
    """

    points: Float64Array
    track: NDArray[np.int64]
    ids: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneTrack:
    """A track as the line through its hits, f64[n, 3]. Values that a VELO or downstream track does not have are NaN.

    charge: -1, 1, or 0 where it is not known. eop: energy in the calorimeter over momentum. hits: numbers by detector.
    """

    kind: str
    line: Float64Array
    eta: float
    phi: float
    backward: bool = False
    charge: int = 0
    p: float = float("nan")
    pt: float = float("nan")
    ip: float = float("nan")
    ip_chi2: float = float("nan")
    chi2: float = float("nan")
    ghost_probability: float = float("nan")
    is_muon: bool = False
    eop: float = float("nan")
    is_electron: bool = False
    hits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneVertex:
    """A primary vertex; `errors` are standard deviations of x, y, z; tracks: the sum of their weights."""

    place: tuple[float, float, float]
    errors: tuple[float, float, float]
    tracks: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneDecay:
    """A vertex of two long tracks: numbers of the tracks, names of its possible decays, flight with respect to
    its primary vertex, masses by hypothesis."""

    place: tuple[float, float, float]
    errors: tuple[float, float, float]
    tracks: tuple[int, int]
    kinds: tuple[str, ...]
    chi2: float
    pt: float
    flight: float
    flight_chi2: float
    corrected_mass: float
    masses: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneDownstreamV0:
    """A vertex of two downstream tracks: numbers of the tracks, names of its possible decays, lines (f64[2, 3]) to the
    first points of both tracks, masses by hypothesis."""

    place: tuple[float, float, float]
    tracks: tuple[int, int]
    legs: tuple[Float64Array, Float64Array]
    kinds: tuple[str, ...]
    chi2: float
    pt: float
    ip: float
    masses: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneStub:
    """A straight line through one hit in each muon station, f64[2, 3], and the chi2 of its fits in x and y."""

    line: Float64Array
    chi2_x: float
    chi2_y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneParticle:
    """A true particle as the line from its origin through its hits, f64[n, 3]."""

    line: Float64Array
    pid: int
    p: float
    pt: float
    eta: float
    mother_pid: int
    is_long: bool
    from_beauty: bool
    from_signal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneCollision:
    """A true collision and its number of tracks."""

    place: tuple[float, float, float]
    tracks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneCells:
    """Cells of the calorimeter with energy: number i64[n], middle x and y f64[n, 2], half of their width f64[n],
    energy f64[n], and the z at which they begin."""

    number: NDArray[np.int64]
    place: Float64Array
    half: Float64Array
    energy: Float64Array
    z: float

    @classmethod
    def none(cls) -> Self:
        """No cell."""
        return cls(number=np.empty(0, np.int64), place=np.empty((0, 2)), half=np.empty(0), energy=np.empty(0), z=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneCluster:
    """A cluster of the calorimeter; e19: energy of its seed over that of the cluster."""

    place: tuple[float, float, float]
    energy: float
    et: float
    e19: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One event. `run` and `event` are None without a readable ODIN bank; lines: names of those that accepted it, None
    where no trigger was run; flags: names of the event's flags; hits: by detector, VELO, UT, SciFi and Muon."""

    run: int | None
    event: int | None
    lines: tuple[str, ...] | None
    flags: tuple[str, ...]
    hits: dict[str, SceneHits]
    tracks: tuple[SceneTrack, ...]
    vertices: tuple[SceneVertex, ...]
    decays: tuple[SceneDecay, ...]
    particles: tuple[SceneParticle, ...]
    collisions: tuple[SceneCollision, ...]
    cells: SceneCells = field(default_factory=SceneCells.none)
    clusters: tuple[SceneCluster, ...] = ()
    downstream_v0s: tuple[SceneDownstreamV0, ...] = ()
    stubs: tuple[SceneStub, ...] = ()

    @property
    def has_truth(self) -> bool:
        """Whether the event is a simulated one."""
        return bool(self.particles or self.collisions)

    @property
    def title(self) -> str:
        """Run and event number."""
        if self.run is None:
            return "event without run and number"
        return f"run {self.run}, event {self.event}"

    @property
    def summary(self) -> str:
        """Numbers of the objects that were found, as a sentence."""
        long = sum(track.kind == LONG_PART for track in self.tracks)
        muons = sum(track.is_muon for track in self.tracks)
        hits = ", ".join(counted(len(hits.ids), f"{name} hit") for name, hits in self.hits.items())
        electrons = counted(sum(track.is_electron for track in self.tracks), "electron")
        downstream = sum(track.kind == DOWNSTREAM_PART for track in self.tracks)
        behind = f", {downstream} downstream" if downstream else ""
        v0s = f", {counted(len(self.downstream_v0s), 'downstream V0')}" if downstream else ""
        stubs = f"; {counted(len(self.stubs), 'muon stub')}" if self.stubs else ""
        ecal = f"; {counted(len(self.clusters), 'cluster')}, {electrons}" if len(self.cells.number) else ""
        decays = counted(len(self.decays), "secondary vertex", "secondary vertices")
        return (
            f"{hits}; {counted(len(self.tracks), 'track')} ({long} long{behind}), {counted(muons, 'muon')}; "
            f"{len(self.vertices)} primary and {decays}{v0s}{ecal}{stubs}"
        )
