"""Writes events as dumps in the format of docs/formats/reference-dumps.md."""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hltnode.processing.lhcb.geometry.muon import N_STATIONS, MuonGeometry, MuonTiles
from hltnode.processing.lhcb.offline.validation.reference import dumps
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.muon import decode_muon
from hltnode.protocol.lhcb.truth import McParticle, decode_particles
from hltnode.protocol.raw_data.raw_bank import RawBank

# Detector types for VELO, UT and SciFi before 2022.
_OLD_TYPES = {2: 8, 3: 11, 5: 10}


def write_dump(folder: Path, banks: Sequence[RawBank], run: int, event: int, geometry: MuonGeometry) -> None:
    """All files of one event."""
    particles = decode_particles(banks)
    long = [particle for particle in particles if particle.is_long and particle.p > 5000]
    contents = {
        dumps.PARTICLES: _particles(particles),
        dumps.VERTICES: b"".join(bytes(bank.payload) for bank in banks if bank.type == LhcbBankType.MC_VERTICES),
        dumps.FORWARD_TRACKS: _tracks(long),
        dumps.MUON_HITS: _muon_hits(banks, geometry),
        dumps.MUON_COORDINATES: _muon_coordinates(banks, geometry),
        **{name: _banks([bank for bank in banks if bank.type == kind]) for kind, name in dumps.BANKS.items()},
    }
    for name, content in contents.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"{run}_{event}.bin").write_bytes(content)


def _old(ids: Sequence[int]) -> bytes:
    old = [_OLD_TYPES[value >> 28] << 28 | value & 0xFFFFFFF for value in ids]
    return struct.pack(f"<{len(old)}I", *old)


def _particles(particles: Sequence[McParticle]) -> bytes:
    parts = [struct.pack("<I", len(particles))]
    for of in particles:
        values = np.zeros((), dtype=dumps.PARTICLE)
        for name in ("key", "pid", "p", "pt", "eta", "phi", "mother_key", "charge", "n_pvs"):
            values[name] = getattr(of, name)
        parts.append(values.tobytes())
        for ids in (of.velo_ids, of.ut_ids, of.scifi_ids):
            parts += [struct.pack("<I", len(ids)), _old(ids)]
    return b"".join(parts)


def _tracks(particles: Sequence[McParticle]) -> bytes:
    parts = [struct.pack("<I", len(particles))]
    for of in particles:
        ids = (*of.velo_ids, *of.scifi_ids, *of.ut_ids)
        parts += [struct.pack("<fffI", of.eta, of.p, of.pt, len(ids)), _old(ids)]
    return b"".join(parts)


def _banks(banks: Sequence[RawBank]) -> bytes:
    bodies = [struct.pack("<I", bank.source_id) + bytes(bank.payload) for bank in banks]
    offsets = np.cumsum([0, *map(len, bodies)])
    return struct.pack(f"<{len(offsets) + 1}I", len(bodies), *offsets.tolist()) + b"".join(bodies)


def _muon_hits(banks: Sequence[RawBank], geometry: MuonGeometry) -> bytes:
    hits = geometry.hits(decode_muon(banks))
    counts = np.bincount(hits.station, minlength=N_STATIONS)
    parts = [struct.pack("<4I", *counts.tolist())]
    for station in range(N_STATIONS):
        here = hits.station == station
        zero = np.zeros(int(here.sum()))
        columns = {
            **{name: getattr(hits, name)[here] for name in ("x", "dx", "y", "dy", "z")},
            **{"dz": zero, "tile": hits.tile[here], "uncrossed": ~hits.crossed[here], "cluster_size": zero},
            **{name: getattr(hits, name)[here] for name in ("time", "time_difference", "region")},
        }
        for name in dumps.MUON_HIT:
            is_length = name in ("x", "dx", "y", "dy", "z", "dz")
            parts.append(np.asarray(columns[name]).astype("<f4" if is_length else "<i4").tobytes())
    return b"".join(parts)


def _old_tile(tile: MuonTiles) -> list[int]:
    fields = {"y": 0, "x": 4, "quarter": 11, "region": 13, "station": 15, "grid_x": 18, "grid_y": 24}
    ids = np.sum([getattr(tile, name) << low for name, low in fields.items()], axis=0)
    return [int(value) for value in ids]


def _muon_coordinates(banks: Sequence[RawBank], geometry: MuonGeometry) -> bytes:
    hits = geometry.hits(decode_muon(banks))
    parts = [struct.pack("<4I", *np.bincount(hits.station, minlength=N_STATIONS).tolist())]
    for station in range(N_STATIONS):
        here = hits.station == station
        tile, crossed = MuonTiles.of_ids(hits.tile[here]), hits.crossed[here]
        # The strips of a crossing; a pad that is read directly crosses itself.
        directly = (station >= 2) & (tile.region == 0)
        wide_y = np.where(directly, tile.grid_y, geometry.x_strip.grid_y[tile.layout])
        wide_x = np.where(directly, tile.grid_x, geometry.y_strip.grid_x[tile.layout])
        begin = (tile.station, tile.region, tile.quarter)
        x_strip = _old_tile(MuonTiles(*begin, tile.x, tile.y * wide_y // tile.grid_y, tile.grid_x, wide_y))
        y_strip = _old_tile(MuonTiles(*begin, tile.x * wide_x // tile.grid_x, tile.y, wide_x, tile.grid_y))
        single = _old_tile(tile)
        ids = []
        for i in range(len(single)):
            ids += [x_strip[i], y_strip[i]] if crossed[i] else [single[i]]
        zero = [0] * len(single)
        words = [*np.where(crossed, 0, 1).tolist(), *ids, *zero, *zero]
        parts.append(struct.pack(f"<{len(words)}I", *words))
    return b"".join(parts)
