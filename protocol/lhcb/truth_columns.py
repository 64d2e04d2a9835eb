"""Truth banks of particles (type 32, docs/formats/truth-banks.md) as columns; only this module reads or writes them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hltnode.protocol._native import find_particles
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.errors import TruthError
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import number_of

# Maximum bytes of particle data per bank; the rest goes to the bank with the next number.
CHUNK_SIZE = 63 * 1024
PARTICLES_VERSION = 2
_MAX_VERSION = 2
# Since this version a particle has the fromSignal flag.
_SIGNAL_FLAG_VERSION = 2

FLAGS = ("is_long", "is_down", "has_velo", "has_ut", "has_scifi", "from_b", "from_c", "from_strange", "from_signal")
# Fields of a particle before its lists of ids; names as in McParticle.
_FIELDS = (
    ("key", "<u4"),
    ("pid", "<i4"),
    *((name, "<f4") for name in ("p", "pt", "eta", "phi", "vertex_x", "vertex_y", "vertex_z")),
    *((name, "u1") for name in FLAGS),
    *((name, "<i4") for name in ("mother_key", "mother_pid", "dom_key", "dom_pid")),
    *((name, "<f4") for name in ("dom_pt", "dom_tau", "charge")),
    ("n_pvs", "<u4"),
)
PARTICLE = np.dtype(list(_FIELDS))
_PARTICLE_WITHOUT_SIGNAL = np.dtype([field for field in _FIELDS if field[0] != "from_signal"])
# Defaults of McParticle that are not 0.
_DEFAULTS = {"mother_key": -1, "dom_key": -1}

_U32 = struct.Struct("<I")
_N_LISTS = 3
_WORD = 4


@dataclass(frozen=True, slots=True, eq=False)
class McParticleColumns:
    """Simulated particles, one row each: `values` has the fields of McParticle (same units, flags 0 or 1) except ids.

    The LHCbIDs (u32) of all particles are concatenated in `velo_ids`, `ut_ids` and `scifi_ids`; `n_velo_ids`,
    `n_ut_ids` and `n_scifi_ids` (i64) are the numbers of ids of each particle.
    """

    values: NDArray[Any]
    velo_ids: NDArray[np.uint32]
    n_velo_ids: NDArray[np.int64]
    ut_ids: NDArray[np.uint32]
    n_ut_ids: NDArray[np.int64]
    scifi_ids: NDArray[np.uint32]
    n_scifi_ids: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)


def decode_particle_columns(banks: Iterable[RawBank]) -> McParticleColumns:
    """The particles of an event from its banks of type 32, no particle without them; other banks are skipped.

    The particle data may be split over banks numbered from 0 in any order.  All bytes must be used.  Raises TruthError.
    """
    parts = sorted((bank for bank in banks if bank.type == LhcbBankType.MC_TRACKS), key=_number)
    if not parts:
        return _columns(np.zeros(_U32.size, np.uint8), [], [], PARTICLES_VERSION)
    if [_number(part) for part in parts] != list(range(len(parts))):
        raise TruthError(
            RejectReason.TRUNCATED,
            f"MC particles: banks {[_number(part) for part in parts]} are not 0..{len(parts) - 1}",
        )
    version = parts[0].version
    if version > _MAX_VERSION or any(part.version != version for part in parts):
        raise TruthError(
            RejectReason.BAD_VERSION,
            f"MC particles: versions {sorted({part.version for part in parts})}, one of 0..{_MAX_VERSION} expected",
        )
    data = b"".join(part.payload for part in parts)
    starts, counts = _find_particles(data, _layout(version).itemsize)
    return _columns(np.frombuffer(data, np.uint8), starts, counts, version)


def _number(bank: RawBank) -> int:
    return number_of(bank.source_id)


def _layout(version: int) -> np.dtype[Any]:
    return PARTICLE if version >= _SIGNAL_FLAG_VERSION else _PARTICLE_WITHOUT_SIGNAL


def _find_particles(data: bytes, fixed_size: int) -> tuple[list[int], list[int]]:
    """The start of each particle, and the lengths of its three lists, particle by particle."""
    if len(data) < _U32.size:
        raise TruthError(
            RejectReason.TRUNCATED, f"MC particles: {len(data)} bytes are too few for the number of particles"
        )
    (n,) = _U32.unpack_from(data)
    starts, counts, at = find_particles(data, _U32.size, n, fixed_size)
    if at < 0:
        raise TruthError(
            RejectReason.TRUNCATED, f"MC particle {len(starts) - 1} of {n}: needs more than the {len(data)} bytes"
        )
    if at > len(data):
        raise TruthError(RejectReason.TRUNCATED, f"MC particles: {n} of them need {at} bytes, {len(data)} found")
    if at < len(data):
        raise TruthError(RejectReason.BAD_SIZE, f"MC particles: {n} of them end at byte {at} of {len(data)}")
    return starts, counts


def _columns(data: NDArray[np.uint8], starts: list[int], counts: list[int], version: int) -> McParticleColumns:
    layout = _layout(version)
    start = np.array(starts, dtype=np.int64)
    n_ids = np.array(counts, dtype=np.int64).reshape(-1, _N_LISTS)
    stored = data[start[:, None] + np.arange(layout.itemsize)].view(layout)[:, 0]
    values = np.zeros(len(start), dtype=PARTICLE)
    for name in layout.names or ():
        values[name] = stored[name]
    flags = np.stack([values[name] for name in FLAGS], axis=1)
    if len(bad := np.flatnonzero(flags.max(axis=1, initial=0) > 1)):
        raise TruthError(
            RejectReason.MALFORMED,
            f"MC particle {bad[0]} of {len(values)}: flags {flags[bad[0]].tolist()} are not 0 or 1",
        )
    lists: list[NDArray[Any]] = []
    list_start = start + layout.itemsize
    for k in range(_N_LISTS):
        n = n_ids[:, k]
        lists += [data[_bytes_of_lists(list_start + _WORD, n)].view("<u4")[:, 0], n]
        list_start = list_start + _WORD * (n + 1)
    return McParticleColumns(values, *lists)


def _bytes_of_lists(start: NDArray[np.int64], n_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Byte offsets i64[ids, 4] of the ids of lists that start at `start`."""
    ids_before = np.cumsum(n_ids) - n_ids
    first = np.repeat(start - _WORD * ids_before, n_ids) + _WORD * np.arange(n_ids.sum())
    offsets: NDArray[np.int64] = first[:, None] + np.arange(_WORD)
    return offsets


def encode_particle_columns(
    columns: Mapping[str, ArrayLike],
    velo_ids: NDArray[np.uint32],
    n_velo_ids: NDArray[np.int64],
    ut_ids: NDArray[np.uint32] | None = None,
    n_ut_ids: NDArray[np.int64] | None = None,
    scifi_ids: NDArray[np.uint32] | None = None,
    n_scifi_ids: NDArray[np.int64] | None = None,
    version: int = PARTICLES_VERSION,
) -> list[RawBank]:
    """The banks (type 32, numbered from 0) of the particles of one event, written by encode_particles_of_events."""
    none, no_ids = np.zeros(len(n_velo_ids), np.int64), np.empty(0, np.uint32)
    lists = [
        (velo_ids, n_velo_ids),
        (no_ids if ut_ids is None else ut_ids, none if n_ut_ids is None else n_ut_ids),
        (no_ids if scifi_ids is None else scifi_ids, none if n_scifi_ids is None else n_scifi_ids),
    ]
    (banks,) = encode_particles_of_events(columns, lists, [len(n_velo_ids)], version)
    return banks


def encode_particles_of_events(
    columns: Mapping[str, ArrayLike],
    lists: Sequence[tuple[NDArray[np.uint32], NDArray[np.int64]]],
    n_particles: Sequence[int],
    version: int = PARTICLES_VERSION,
) -> list[list[RawBank]]:
    """The banks (type 32, numbered from 0) of one event or several, of `n_particles` particles each, given as columns.

    `columns` maps fields of McParticle to one value per particle (or one for all); missing fields get McParticle's
    defaults. `lists` are those of VELO, UT and SciFi: the LHCbIDs of the first particle, then of the second ..., and
    the number of ids of each particle. Before version 2 `from_signal` is lost. Raises TruthError if the numbers do not
    add up, a column is unknown, or a value does not fit.
    """
    if not 0 <= version <= _MAX_VERSION:
        raise TruthError(RejectReason.BAD_VERSION, f"MC particles: version {version}, 0..{_MAX_VERSION} are supported")
    n = sum(n_particles)
    for ids, counts in lists:
        if len(counts) != n or int(counts.sum()) != len(ids):
            raise TruthError(
                RejectReason.BAD_SIZE,
                f"MC particles: {counts.sum()} ids announced, {len(ids)} given, for {len(counts)} of {n} particles",
            )
    layout = _layout(version)
    stored = _stored(columns, n, layout)
    n_ids = np.stack([counts for _, counts in lists], axis=1)
    size = layout.itemsize + _WORD * (_N_LISTS + n_ids.sum(axis=1))
    # The particles of an event follow their number.
    event_ends = np.cumsum(n_particles)
    event = np.repeat(np.arange(len(n_particles)), n_particles)
    start = _U32.size * (event + 1) + np.cumsum(size) - size
    ends = _U32.size * np.arange(1, len(n_particles) + 1) + np.append(0, np.cumsum(size))[event_ends]
    begins = np.append(0, ends[:-1])
    data = np.zeros(int(ends[-1]), dtype=np.uint8)
    data[begins[:, None] + np.arange(_U32.size)] = np.array(n_particles, "<u4").view(np.uint8).reshape(-1, _U32.size)
    data[start[:, None] + np.arange(layout.itemsize)] = stored.view(np.uint8).reshape(n, layout.itemsize)
    list_start = start + layout.itemsize
    for ids, counts in lists:
        data[list_start[:, None] + np.arange(_WORD)] = counts.astype("<u4").view(np.uint8).reshape(n, _WORD)
        data[_bytes_of_lists(list_start + _WORD, counts)] = ids.astype("<u4").view(np.uint8).reshape(-1, _WORD)
        list_start = list_start + _WORD * (counts + 1)
    view = memoryview(data.tobytes())
    return [
        [
            RawBank(LhcbBankType.MC_TRACKS, version, number, view[at : min(at + CHUNK_SIZE, end)])
            for number, at in enumerate(range(begin, end, CHUNK_SIZE))
        ]
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]


def _stored(columns: Mapping[str, ArrayLike], n: int, layout: np.dtype[Any]) -> NDArray[Any]:
    if unknown := set(columns) - set(PARTICLE.names or ()):
        raise TruthError(RejectReason.MALFORMED, f"MC particles: unknown fields {sorted(unknown)}")
    stored = np.zeros(n, dtype=layout)
    for name, values in (_DEFAULTS | dict(columns)).items():
        if name not in (layout.names or ()):
            continue
        try:
            with np.errstate(over="raise"):
                stored[name] = values
        except (OverflowError, FloatingPointError) as error:
            raise TruthError(RejectReason.OVERSIZED, f"MC particles, {name}: {error}") from error
    return stored


def join_particle_columns(parts: Sequence[McParticleColumns]) -> McParticleColumns:
    """The particles of several events (at least one), in order."""
    return McParticleColumns(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in (
                "values",
                "velo_ids",
                "n_velo_ids",
                "ut_ids",
                "n_ut_ids",
                "scifi_ids",
                "n_scifi_ids",
            )
        )
    )
