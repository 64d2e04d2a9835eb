"""Monte Carlo truth in raw banks: particles (type 32), vertices (type 33) and the sample (type 34)
(docs/formats/truth-banks.md)."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.errors import TruthError
from hltnode.protocol.lhcb.truth_columns import (
    FLAGS,
    PARTICLE,
    PARTICLES_VERSION,
    decode_particle_columns,
    encode_particle_columns,
)
from hltnode.protocol.raw_data.raw_bank import RawBank

VERTICES_VERSION = 1
SAMPLE_VERSION = 1
MAX_KIND_SIZE = 64
"""Bytes of the longest name of a sample."""

_VERTEX = struct.Struct("<iddd")
_N_VERTICES = struct.Struct("<i")
_SAMPLE = struct.Struct("<dBB")


@dataclass(frozen=True, slots=True, kw_only=True)
class McParticle:
    """A simulated particle.

    `p`, `pt` and `dom_pt` in MeV, `vertex_*` (origin) in mm, `dom_tau` in ns, `phi` in rad; `key` and `mother_key`
    number particles within the event; `dom_*` describe the decaying heavy-flavour ancestor (without one: own key,
    -999999, -1, -1); `n_pvs` is the event's number of primary vertices with at least four tracks; the last three fields
    are the LHCbIDs of the particle's hits.
    """

    key: int
    pid: int
    p: float
    pt: float
    eta: float
    phi: float
    vertex_x: float
    vertex_y: float
    vertex_z: float
    is_long: bool = False
    is_down: bool = False
    has_velo: bool = False
    has_ut: bool = False
    has_scifi: bool = False
    from_b: bool = False
    from_c: bool = False
    from_strange: bool = False
    from_signal: bool = False
    mother_key: int = -1
    mother_pid: int = 0
    dom_key: int = -1
    dom_pid: int = 0
    dom_pt: float = 0.0
    dom_tau: float = 0.0
    charge: float = 0.0
    n_pvs: int = 0
    velo_ids: tuple[int, ...] = ()
    ut_ids: tuple[int, ...] = ()
    scifi_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class McVertex:
    """A simulated primary vertex: number of tracks, position in mm."""

    n_tracks: int
    x: float
    y: float
    z: float


@dataclass(frozen=True, slots=True)
class McSample:
    """The sample of a simulated event.

    kind: its name, such as "minbias". minimum_bias: whether its events stand for bunch crossings. weight: of the event
    in a mean over crossings; the mean weight of a sample is 1.
    """

    kind: str
    minimum_bias: bool
    weight: float = 1.0


def decode_particles(banks: Iterable[RawBank]) -> list[McParticle]:
    """The particles of an event from its banks, read by decode_particle_columns. Raises TruthError."""
    columns = decode_particle_columns(banks)
    fields = {name: columns.values[name].tolist() for name in PARTICLE.names or ()}
    for name in FLAGS:
        fields[name] = list(map(bool, fields[name]))
    fields["velo_ids"] = _split(columns.velo_ids, columns.n_velo_ids)
    fields["ut_ids"] = _split(columns.ut_ids, columns.n_ut_ids)
    fields["scifi_ids"] = _split(columns.scifi_ids, columns.n_scifi_ids)
    return [McParticle(**dict(zip(fields, values, strict=True))) for values in zip(*fields.values(), strict=True)]


def _split(ids: NDArray[np.uint32], counts: NDArray[np.int64]) -> list[tuple[int, ...]]:
    values = iter(ids.tolist())
    return [tuple(islice(values, n)) for n in counts.tolist()]


def encode_particles(particles: Sequence[McParticle], version: int = PARTICLES_VERSION) -> list[RawBank]:
    """The banks (type 32, numbered from 0) that hold `particles`; before version 2 `from_signal` is lost.

    Raises TruthError for values that do not fit.
    """
    columns = {name: [getattr(particle, name) for particle in particles] for name in PARTICLE.names or ()}
    lists: dict[str, NDArray[Any]] = {}
    for name in ("velo_ids", "ut_ids", "scifi_ids"):
        of_particles = [getattr(particle, name) for particle in particles]
        try:
            lists[name] = np.fromiter(chain.from_iterable(of_particles), dtype=np.uint32)
        except OverflowError as error:
            raise TruthError(RejectReason.OVERSIZED, f"MC particles, {name}: {error}") from error
        lists[f"n_{name}"] = np.array([len(ids) for ids in of_particles], dtype=np.int64)
    return encode_particle_columns(columns, **lists, version=version)


def decode_vertices(bank: RawBank) -> list[McVertex]:
    """The primary vertices of an event from its bank of type 33.  Raises TruthError."""
    if bank.type != LhcbBankType.MC_VERTICES:
        raise TruthError(
            RejectReason.MISMATCH, f"MC vertices: bank type {LhcbBankType.MC_VERTICES:d} expected, {bank.type} found"
        )
    size = len(bank.payload)
    if size < _N_VERTICES.size:
        raise TruthError(RejectReason.TRUNCATED, f"MC vertices: {size} bytes")
    (n,) = _N_VERTICES.unpack_from(bank.payload)
    if n < 0 or _N_VERTICES.size + n * _VERTEX.size != size:
        raise TruthError(RejectReason.BAD_SIZE, f"MC vertices: {n} announced in {size} bytes")
    return [McVertex(*values) for values in _VERTEX.iter_unpack(bank.payload[_N_VERTICES.size :])]


def encode_vertices(vertices: Sequence[McVertex], version: int = VERTICES_VERSION) -> RawBank:
    """The bank (type 33) that holds `vertices`.  Raises TruthError for values that do not fit."""
    try:
        parts = [_N_VERTICES.pack(len(vertices))]
        parts += [_VERTEX.pack(vertex.n_tracks, vertex.x, vertex.y, vertex.z) for vertex in vertices]
    except struct.error as error:
        raise TruthError(RejectReason.OVERSIZED, f"MC vertices: {error}") from error
    return RawBank(LhcbBankType.MC_VERTICES, version, 0, memoryview(b"".join(parts)))


def decode_sample(bank: RawBank) -> McSample:
    """The sample of an event from its bank of type 34.  Raises TruthError."""
    if bank.type != LhcbBankType.MC_SAMPLE:
        raise TruthError(
            RejectReason.MISMATCH, f"MC sample: bank type {LhcbBankType.MC_SAMPLE:d} expected, {bank.type} found"
        )
    if bank.version != SAMPLE_VERSION:
        raise TruthError(
            RejectReason.BAD_VERSION, f"MC sample: version {SAMPLE_VERSION} expected, {bank.version} found"
        )
    size = len(bank.payload)
    if not _SAMPLE.size < size <= _SAMPLE.size + MAX_KIND_SIZE:
        raise TruthError(RejectReason.BAD_SIZE, f"MC sample: {size} bytes")
    weight, minimum_bias, name_size = _SAMPLE.unpack_from(bank.payload)
    if _SAMPLE.size + name_size != size:
        raise TruthError(RejectReason.BAD_SIZE, f"MC sample: a name of {name_size} bytes in {size} bytes")
    name = bytes(bank.payload[_SAMPLE.size :]).decode("latin-1")
    is_name = name.isascii() and name.isprintable()
    if not (math.isfinite(weight) and weight > 0 and minimum_bias <= 1 and is_name):
        raise TruthError(RejectReason.MALFORMED, f"MC sample: weight {weight}, flag {minimum_bias}, name {name!r}")
    return McSample(name, bool(minimum_bias), weight)


def encode_sample(sample: McSample) -> RawBank:
    """The bank (type 34) of an event of a sample.  Raises TruthError for a name or weight that cannot be written."""
    name = sample.kind.encode()
    if not 0 < len(name) <= MAX_KIND_SIZE or not (name.isascii() and sample.kind.isprintable()):
        raise TruthError(RejectReason.OVERSIZED, f"MC sample: name {sample.kind!r}")
    if not (math.isfinite(sample.weight) and sample.weight > 0):
        raise TruthError(RejectReason.MALFORMED, f"MC sample: weight {sample.weight}")
    payload = _SAMPLE.pack(sample.weight, sample.minimum_bias, len(name)) + name
    return RawBank(LhcbBankType.MC_SAMPLE, SAMPLE_VERSION, 0, memoryview(payload))
