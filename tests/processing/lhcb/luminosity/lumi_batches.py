"""Runs luminosity_fill_counters on given objects, and computes its counters in plain NumPy."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.calorimeter.collections import ECAL_GEOMETRY
from hltnode.processing.lhcb.geometry.ecal import EcalGeometry
from hltnode.processing.lhcb.geometry.ideal_ecal import FIRST_CELLS, N_CELLS
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.luminosity.collections import LUMI_SCALES, N_COUNTERS, scales_table
from hltnode.processing.lhcb.luminosity.counters import COUNTERS
from hltnode.processing.lhcb.luminosity.fill_counters import fill_counters
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.velo.collections import VELO_GEOMETRY
from hltnode.protocol.lhcb.banks.ecal import VOID_ADC
from hltnode.protocol.lhcb.banks.plume import LUMI_CHANNELS
from tests.processing.framework.kernel_runner import Launch, run_algorithms

BUILTIN = EcalGeometry.builtin()
BEAM = replace(VeloGeometry.builtin().beamline, x=0.4, y=-0.3, slope_x=2e-4, slope_y=-1e-4)
F32 = np.float32
INDEX = {counter.name: i for i, counter in enumerate(COUNTERS)}


@functools.cache
def ecal_bytes() -> bytes:
    return BUILTIN.to_bytes()


@dataclass(kw_only=True)
class LumiEvent:
    """Objects of one event: tracks f32[n, 6] (x, y, z, tx, ty, backward), vertices f32[n, 3], SciFi ids, cells, muon
    hits [n, 2] of station and region by station, long tracks, PLUME."""

    tracks: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 6), np.float32))
    vertices: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    scifi: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    adc: NDArray[np.int16] = field(default_factory=lambda: np.full(N_CELLS, VOID_ADC, np.int16))
    muon: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    is_muon: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    plume: NDArray[np.uint16] = field(default_factory=lambda: np.zeros(64, np.uint16))
    over: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(64, np.bool_))
    plume_read: int = 0
    event_id: int = 0
    event_type: int = 8


def random_event(rng: np.random.Generator, n: int) -> LumiEvent:
    """About n objects of each kind."""
    slope = np.exp(-rng.uniform(0.2, 6.0, n))
    phi = rng.uniform(0, 2 * np.pi, n)
    tracks = np.column_stack(
        [rng.normal(0, 3, (n, 2)), rng.normal(0, 250, n), slope * np.cos(phi), slope * np.sin(phi), rng.random(n) < 0.4]
    )
    ids = (
        5 << 28
        | rng.integers(0, 4, n) << 18
        | rng.integers(0, 4, n) << 16
        | rng.integers(0, 4, n) << 14
        | rng.integers(0, 8, n) << 11
        | rng.integers(0, 2048, n)
    )
    muon = np.column_stack([np.sort(rng.integers(0, 4, n)), rng.integers(0, 4, n)])
    hit = rng.random(N_CELLS) < 0.05
    adc = np.clip(np.rint(rng.normal(0.4, 1.2, N_CELLS) + hit * rng.exponential(60, N_CELLS)), -256, 3839)
    n_vertices = min(n, 5)
    vertices = np.column_stack([rng.normal(0, 2.5, (n_vertices, 2)), rng.normal(0, 250, n_vertices)])
    return LumiEvent(
        tracks=tracks.astype(np.float32),
        vertices=vertices.astype(np.float32),
        scifi=ids.astype(np.uint32),
        adc=np.where(rng.random(N_CELLS) < 0.01, VOID_ADC, adc).astype(np.int16),
        muon=muon,
        is_muon=(rng.random(min(n, 100)) < 0.2).astype(np.uint8),
        plume=rng.integers(0, 4096, 64).astype(np.uint16),
        over=rng.random(64) < 0.4,
        plume_read=1,
        event_id=int(rng.integers(1 << 31)),
    )


def run(
    events: list[LumiEvent], launch: Launch | None = None, *, fill: int = 0xAA
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Counters u32[n, counters] and flags u32[n]."""
    n = len(events)
    most = max(1, *(max(len(e.tracks), len(e.scifi), len(e.muon)) for e in events))
    stride = -(-2 * most // 8) * 8 + 8
    limits = BatchLimits(events=n, meps=1, input_bytes=n * 64 * stride, rows=1)

    def columns(values: list[NDArray[Any]], width: int, places: int) -> NDArray[Any]:
        found = np.zeros((n, places, width), np.float64)
        for i, each in enumerate(values):
            found[i, : len(each)] = each.reshape(len(each), width)
        return found

    tracks = columns([e.tracks for e in events], 6, stride // 2)
    vertex = np.zeros((n, MAX_PVS, 10), np.float32)
    vertex[:, :, :3] = columns([e.vertices for e in events], 3, MAX_PVS)
    odin = np.zeros((n, 11), np.uint32)
    odin[:, 1] = [e.event_type for e in events]
    odin[:, 4] = [e.event_id for e in events]
    offsets = stride * np.arange(n + 1)
    stations = np.array([[np.searchsorted(e.muon[:, 0], s) for s in range(8)] for e in events])
    velo = np.frombuffer(replace(VeloGeometry.builtin(), beamline=BEAM).to_bytes(), VELO_GEOMETRY.dtype)
    energy = [BUILTIN.gain.astype(float) @ np.where(e.adc == VOID_ADC, 0, e.adc - BUILTIN.pedestal) for e in events]
    given = {
        "lumi_scales": np.frombuffer(scales_table(), LUMI_SCALES.dtype),
        "velo_geometry": velo,
        "ecal_geometry": np.frombuffer(ecal_bytes(), ECAL_GEOMETRY.dtype),
        "events.odin": odin,
        "events.flags": np.zeros(n),
        "velo_clusters.offset": offsets,
        "velo_tracks.count": [len(e.tracks) for e in events],
        "velo_tracks.backward": tracks[..., 5],
        **{f"velo_beamline.{name}": tracks[..., i] for i, name in enumerate(("x", "y", "z", "tx", "ty"))},
        "pvs.count": [len(e.vertices) for e in events],
        "pvs.vertex": vertex,
        "scifi_hits.offset": offsets,
        "scifi_hits.count": [len(e.scifi) for e in events],
        "scifi_hits.id": columns([e.scifi for e in events], 1, stride),
        "events.ecal_adc": np.stack([e.adc for e in events]),
        "events.ecal_energy": energy,
        "muon_hits.offset": offsets,
        "muon_hits.station_offset": stations,
        "muon_hits.tile": columns([e.muon[:, 1] << 14 for e in events], 1, stride),
        "long_tracks.count": [len(e.is_muon) for e in events],
        "long_tracks.is_muon": columns([e.is_muon for e in events], 1, MAX_TRACKS_PER_EVENT),
        "events.plume_adc": np.stack([e.plume for e in events]),
        "events.plume_over_threshold": np.stack([np.packbits(e.over, bitorder="little").view("<u4") for e in events]),
        "events.plume_read": [e.plume_read for e in events],
    }
    made = run_algorithms((fill_counters,), {k: np.asarray(v) for k, v in given.items()}, n, limits, launch, fill=fill)
    return made["events.lumi_counters"].reshape(-1, N_COUNTERS)[:n], made["events.flags"][:n]


def expected(event: LumiEvent) -> dict[str, float]:
    """The counted values by name, from the definitions of docs/physics/luminosity.md, in double precision."""
    found: dict[str, Any] = {}
    x, y, z, tx, ty, backward = event.tracks.T.astype(float)
    dx, dy = x - BEAM.x - BEAM.slope_x * z, y - BEAM.y - BEAM.slope_y * z
    eta = np.arcsinh(1 / np.hypot(tx, ty)) * np.where(backward > 0, -1, 1)
    distance = np.abs(ty * dx - tx * dy) / np.hypot(tx, ty)
    found["VeloTracks"] = len(event.tracks)
    found["VeloFiducialTracks"] = np.count_nonzero((np.abs(z) < 300) & (distance < 3))
    for i, n in enumerate(np.histogram(eta, [-np.inf, -4, -3, -2, 2, 3, 4, 5, np.inf])[0].tolist()):
        found[f"VeloTracksEtaBin{i}"] = n
    vx, vy, vz = event.vertices.T.astype(float)
    radius = np.hypot(vx - BEAM.x - BEAM.slope_x * vz, vy - BEAM.y - BEAM.slope_y * vz)
    found["VeloVertices"] = len(event.vertices)
    found["FiducialVeloVertices"] = np.count_nonzero((np.abs(vz) < 300) & (radius < 3))
    if len(event.vertices):
        chosen = event.vertices[event.event_id % len(event.vertices)].tolist()
        found |= dict(zip(("VeloVertexX", "VeloVertexY", "VeloVertexZ"), chosen, strict=True))
    station, module, quarter = event.scifi >> 18 & 3, event.scifi >> 11 & 7, event.scifi >> 14 & 3
    for t, (n_modules, last) in enumerate(((5, "4"), (5, "4"), (6, "45")), 1):
        of = (station == t) & (module < n_modules)
        found[f"SciFiT{t}M123"] = np.count_nonzero(of & (module >= 1) & (module <= 3))
        found[f"SciFiT{t}M{last}"] = np.count_nonzero(of & (module >= 4))
        for m in range(n_modules):
            for pair, names in ((0, "02"), (1, "13")):
                found[f"SciFiT{t}Q{names}M{m}"] = np.count_nonzero(of & (module == m) & (quarter % 2 == pair))
    energy = np.where(event.adc == VOID_ADC, 0.0, BUILTIN.gain.astype(float) * (event.adc - F32(BUILTIN.pedestal)))
    cx, cy = BUILTIN.centre.astype(float).T
    a, b, c, d = BUILTIN.planes[1].astype(float)
    cz = -(a * cx + b * cy + d) / c
    across = energy * np.hypot(cx, cy) / np.sqrt(cx**2 + cy**2 + cz**2)
    region = np.digitize(np.arange(N_CELLS), FIRST_CELLS[1:3])
    found["ECalET"], found["ECalEtot"] = across.sum(), energy.sum()
    for i, name in enumerate(("Outer", "Middle", "Inner")):
        found[f"ECalET{name}Top"] = across[(region == i) & (cy > 0)].sum()
        found[f"ECalET{name}Bottom"] = across[(region == i) & (cy <= 0)].sum()
    for s in range(3):
        for r in range(4):
            found[f"MuonHitsM{s + 2}R{r + 1}"] = np.count_nonzero((event.muon == (s, r)).all(axis=1))
    found["LongMuons"] = int(event.is_muon.sum())
    lumi = list(LUMI_CHANNELS)
    found["PlumeAvgLumiADC"] = event.plume[lumi].mean()
    found["PlumeLumiOverthrLow"] = sum(1 << i for i in range(22) if event.over[i])
    found["PlumeLumiOverthrHigh"] = sum(1 << i for i in range(22) if event.over[32 + i])
    found |= {f"PlumeLumiADC{i:02}": int(event.plume[channel]) for i, channel in enumerate(lumi)}
    found["PlumeRead"] = event.plume_read
    return {name: float(value) for name, value in found.items()}
