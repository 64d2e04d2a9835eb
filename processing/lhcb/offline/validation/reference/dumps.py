"""Reader of a folder of dumps of events, one file an event and kind (docs/formats/reference-dumps.md)."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.muon import N_STATIONS, MuonTiles
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.offline.validation.reference.forward_tracks import read_forward_tracks
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.truth import McVertex, decode_vertices
from hltnode.protocol.raw_data.raw_bank import RawBank

BANKS = {LhcbBankType.UT: "banks/UT", LhcbBankType.FT_CLUSTER: "banks/FTCluster"}
PARTICLES = "MC_info/tracks"
VERTICES = "MC_info/PVs"
FORWARD_TRACKS = "forward_tracks"
MUON_HITS = "muon_common_hits"
MUON_COORDINATES = "muon_coords"
FOLDERS = (*BANKS.values(), PARTICLES, VERTICES, FORWARD_TRACKS, MUON_HITS, MUON_COORDINATES)
"""Folders of a dump, by their content; a dump may lack some."""

PARTICLE = np.dtype(
    [
        ("key", "<u4"),
        ("pid", "<i4"),
        *((name, "<f4") for name in ("p", "pt", "eta", "phi", "x", "y", "z")),
        ("flags", "u1", 8),
        ("mother_key", "<i4"),
        ("dom_key", "<i4"),
        ("dom_pid", "<i4"),
        *((name, "<f4") for name in ("dom_pt", "dom_tau", "charge")),
        ("n_pvs", "<u4"),
    ]
)
"""A particle up to its lists of ids: of VELO, UT and SciFi hits, in the scheme of before 2022."""
MUON_HIT = ("tile", "x", "dx", "y", "dy", "z", "dz", "uncrossed", "time", "time_difference", "cluster_size", "region")
"""The columns of muon hits, station after station."""
_MUON_LENGTHS = ("x", "dx", "y", "dy", "z", "dz")
# Bits of a muon tile id of before 2022: the lowest, and their number.
_OLD_TILE = {
    **{"y": (0, 4), "x": (4, 7), "quarter": (11, 2), "region": (13, 2)},
    **{"station": (15, 3), "grid_x": (18, 6), "grid_y": (24, 5)},
}
_U32 = struct.Struct("<I")


class DumpError(ValueError):
    """A dump that cannot be read or used; the message names the file or folder."""


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceParticles:
    """Particles of an event, `values` of PARTICLE, and the ids of all their VELO and SciFi hits, u32."""

    values: NDArray[Any]
    velo_ids: NDArray[np.uint32]
    scifi_ids: NDArray[np.uint32]


class ReferenceDump:
    """A folder of dumps. Raises DumpError if it has none of the known folders in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._folders = [name for name in FOLDERS if (folder / name).is_dir()]
        if not self._folders:
            raise DumpError(f"{folder}: no dump of events: it has none of {', '.join(FOLDERS)}")

    def events(self) -> list[tuple[int, int]]:
        """Run and number of all events, ascending."""
        found = set()
        for name in self._folders:
            for path in (self.folder / name).glob("*_*.bin"):
                run, _, number = path.stem.partition("_")
                if run.isdigit() and number.isdigit():
                    found.add((int(run), int(number)))
        return sorted(found)

    def path(self, kind: str, run: int, event: int) -> Path | None:
        """The file of a kind (a folder) and event, None where there is none."""
        path = self.folder / kind / f"{run}_{event}.bin"
        return path if path.is_file() else None


def read_banks(path: Path, bank_type: LhcbBankType, version: int) -> list[RawBank]:
    """The banks of a detector; a dump has no versions. Raises DumpError."""
    content = _content(path)
    if len(content) < _U32.size:
        raise DumpError(f"{path}: {len(content)} bytes hold no number of banks")
    (n,) = _U32.unpack_from(content)
    begin = _U32.size * (n + 2)
    if begin > len(content):
        raise DumpError(f"{path}: {n} banks announced in {len(content)} bytes")
    offset = np.frombuffer(content, "<u4", n + 1, _U32.size).astype(np.int64)
    if (np.diff(offset) < _U32.size).any() or begin + offset[-1] != len(content):
        raise DumpError(f"{path}: the places of its {n} banks do not fit its {len(content)} bytes")
    view = memoryview(content)
    banks = []
    for first, end in zip(begin + offset[:-1], begin + offset[1:], strict=True):
        (source,) = _U32.unpack_from(content, first)
        banks.append(RawBank(bank_type, version, source & 0xFFFF, view[first + _U32.size : end]))
    return banks


def read_particles(path: Path) -> ReferenceParticles:
    """The simulated particles of an event. Raises DumpError."""
    content = _content(path)
    values: list[NDArray[Any]] = []
    ids: tuple[list[NDArray[np.uint32]], ...] = ([], [], [])
    try:
        (n,) = _U32.unpack_from(content)
        at = _U32.size
        for _ in range(n):
            values.append(np.frombuffer(content, PARTICLE, 1, at))
            at += PARTICLE.itemsize
            for of_detector in ids:
                (n_ids,) = _U32.unpack_from(content, at)
                of_detector.append(np.frombuffer(content, "<u4", n_ids, at + _U32.size))
                at += _U32.size * (1 + n_ids)
    except (struct.error, ValueError) as error:
        raise DumpError(f"{path}: particle {len(values)} does not fit its {len(content)} bytes") from error
    if at != len(content):
        raise DumpError(f"{path}: {n} particles end at byte {at} of {len(content)}")
    velo, _, scifi = (np.concatenate([*of, np.empty(0, np.uint32)]) for of in ids)
    return ReferenceParticles(np.concatenate([*values, np.empty(0, PARTICLE)]), velo, scifi)


def read_vertices(path: Path) -> list[McVertex]:
    """The simulated collisions of an event. Raises DumpError."""
    try:
        return decode_vertices(RawBank(LhcbBankType.MC_VERTICES, 1, 0, memoryview(_content(path))))
    except ProtocolError as error:
        raise DumpError(f"{path}: {error}") from error


def read_tracks(path: Path) -> TrackTable:
    """The long tracks of another program. Raises ForwardTracksError."""
    return read_forward_tracks([path])


def read_muon_hits(path: Path) -> dict[str, NDArray[Any]]:
    """Columns of the muon hits of an event: `station` and those of MUON_HIT, lengths in mm. Raises DumpError."""
    words = _words(path)
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in ("station", *MUON_HIT)}
    at = N_STATIONS
    for station, n in enumerate(words[:N_STATIONS].tolist()):
        if at + len(MUON_HIT) * n > len(words):
            raise DumpError(f"{path}: {n} hits of station {station} do not fit its {len(words)} words")
        block = words[at : at + len(MUON_HIT) * n].reshape(len(MUON_HIT), n)
        at += block.size
        columns["station"].append(np.full(n, station))
        for name, row in zip(MUON_HIT, block, strict=True):
            columns[name].append(row.view("<f4" if name in _MUON_LENGTHS else "<i4"))
    _ends(path, at, words)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def read_muon_tiles(path: Path) -> NDArray[np.uint32]:
    """The tile ids of the muon hits of an event: of crossings the pad, else the strip. Raises DumpError."""
    words = _words(path)
    found = []
    at = N_STATIONS
    for station, n in enumerate(words[:N_STATIONS].tolist()):
        is_single = words[at : at + n] != 0
        n_ids = 2 * n - int(is_single.sum())
        if at + 3 * n + n_ids > len(words) or words[at : at + n].max(initial=0) > 1:
            raise DumpError(f"{path}: {n} hits of station {station} do not fit its {len(words)} words")
        ids = words[at + n : at + n + n_ids]
        at += 3 * n + n_ids
        first = np.cumsum(2 - is_single) - (2 - is_single)
        crossed = first[~is_single]
        tiles = _tiles_of_before_2022(ids)
        found += [_crossing(tiles[crossed], tiles[crossed + 1]), tiles[first[is_single]].ids()]
    _ends(path, at, words)
    return np.concatenate(found)


def _tiles_of_before_2022(ids: NDArray[np.uint32]) -> MuonTiles:
    return MuonTiles(**{name: ids.astype(np.int64) >> low & (1 << bits) - 1 for name, (low, bits) in _OLD_TILE.items()})


def _crossing(a: MuonTiles, b: MuonTiles) -> NDArray[np.uint32]:
    """The pads where pairs of strips cross: x of the one that is finer in x, y of the other."""
    a_is_finer = a.grid_x > b.grid_x
    x, grid_x = (np.where(a_is_finer, getattr(a, name), getattr(b, name)) for name in ("x", "grid_x"))
    y, grid_y = (np.where(a_is_finer, getattr(b, name), getattr(a, name)) for name in ("y", "grid_y"))
    return MuonTiles(a.station, a.region, a.quarter, x, y, grid_x, grid_y).ids()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DumpError(f"{path}: cannot be read: {error.strerror}") from error


def _words(path: Path) -> NDArray[np.uint32]:
    content = _content(path)
    if len(content) % _U32.size or len(content) < _U32.size * N_STATIONS:
        raise DumpError(f"{path}: {len(content)} bytes are not words of 32 bits for {N_STATIONS} stations")
    return np.frombuffer(content, "<u4")


def _ends(path: Path, at: int, words: NDArray[np.uint32]) -> None:
    if at != len(words):
        raise DumpError(f"{path}: its hits end at word {at} of {len(words)}")
