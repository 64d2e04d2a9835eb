"""Monte Carlo truth in raw banks: particles (type 32) and vertices (type 33) (formats.md B12)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .errors import RejectReason, TruthError
from .raw_bank import BankType, RawBank
from .source_id import number_of

# Bytes of particle data per bank; the rest goes to the bank with the next number.
CHUNK_SIZE = 63 * 1024
PARTICLES_VERSION = 2
VERTICES_VERSION = 1
# From this version on a particle has the fromSignal flag.
_SIGNAL_FLAG_VERSION = 2
_MAX_VERSION = 2

_U32 = struct.Struct("<I")
_KINEMATICS = struct.Struct("<Ii7f")
_ANCESTRY = struct.Struct("<iiiifffI")
_VERTEX = struct.Struct("<iddd")
_N_VERTICES = struct.Struct("<i")


@dataclass(frozen=True, slots=True, kw_only=True)
class McParticle:
    """A simulated particle.

    `p`, `pt` and `dom_pt` in MeV, `vertex_*` (origin) in mm, `dom_tau` in ns, `phi` in rad; `key` and `mother_key`
    number particles within the event; `dom_*` belong to the decaying heavy-flavour ancestor (without one: own key,
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


def decode_particles(banks: Iterable[RawBank]) -> list[McParticle]:
    """The particles of an event from its banks; banks of other types are skipped, none of type 32 gives [].

    The particle data may be split over banks numbered from 0 in any order.  All bytes must be used.  Raises TruthError.
    """
    parts = sorted((bank for bank in banks if bank.type == BankType.MC_TRACKS), key=_number)
    if not parts:
        return []
    if [_number(part) for part in parts] != list(range(len(parts))):
        raise TruthError(
            RejectReason.TRUNCATED,
            f"MC particles: banks {[_number(part) for part in parts]} are not 0..{len(parts) - 1}",
        )
    version = parts[0].version
    if version > _MAX_VERSION or any(part.version != version for part in parts):
        raise TruthError(
            RejectReason.BAD_VERSION,
            f"MC particles: bank versions {sorted({part.version for part in parts})}, one of 0..{_MAX_VERSION} is read",
        )
    data = b"".join(part.payload for part in parts)
    try:
        return _read_particles(data, version)
    except struct.error as error:
        raise TruthError(RejectReason.TRUNCATED, f"MC particles: {len(data)} bytes end too early: {error}") from error


def _number(bank: RawBank) -> int:
    return number_of(bank.source_id)


def _read_particles(data: bytes, version: int) -> list[McParticle]:
    n_flags = 9 if version >= _SIGNAL_FLAG_VERSION else 8
    (n,) = _U32.unpack_from(data)
    at = _U32.size
    particles: list[McParticle] = []
    for i in range(n):
        key, pid, p, pt, eta, phi, x, y, z = _KINEMATICS.unpack_from(data, at)
        at += _KINEMATICS.size
        flags = data[at : at + n_flags]
        at += n_flags
        if max(flags, default=0) > 1:
            raise TruthError(RejectReason.MALFORMED, f"MC particle {i} of {n}: flags {list(flags)} are not 0 or 1")
        mother_key, mother_pid, dom_key, dom_pid, dom_pt, dom_tau, charge, n_pvs = _ANCESTRY.unpack_from(data, at)
        at += _ANCESTRY.size
        ids: list[tuple[int, ...]] = []
        for _ in range(3):
            (n_ids,) = _U32.unpack_from(data, at)
            at += _U32.size
            if n_ids * _U32.size > len(data) - at:
                raise TruthError(
                    RejectReason.TRUNCATED,
                    f"MC particle {i} of {n}: {n_ids} ids announced, {len(data) - at} bytes left",
                )
            ids.append(struct.unpack_from(f"<{n_ids}I", data, at))
            at += n_ids * _U32.size
        is_long, is_down, has_velo, has_ut, has_scifi, from_b, from_c, from_strange, *signal = map(bool, flags)
        particles.append(
            McParticle(
                key=key,
                pid=pid,
                p=p,
                pt=pt,
                eta=eta,
                phi=phi,
                vertex_x=x,
                vertex_y=y,
                vertex_z=z,
                is_long=is_long,
                is_down=is_down,
                has_velo=has_velo,
                has_ut=has_ut,
                has_scifi=has_scifi,
                from_b=from_b,
                from_c=from_c,
                from_strange=from_strange,
                from_signal=signal == [True],
                mother_key=mother_key,
                mother_pid=mother_pid,
                dom_key=dom_key,
                dom_pid=dom_pid,
                dom_pt=dom_pt,
                dom_tau=dom_tau,
                charge=charge,
                n_pvs=n_pvs,
                velo_ids=ids[0],
                ut_ids=ids[1],
                scifi_ids=ids[2],
            )
        )
    if at != len(data):
        raise TruthError(RejectReason.BAD_SIZE, f"MC particles: {n} of them end at byte {at} of {len(data)}")
    return particles


def encode_particles(particles: Sequence[McParticle], version: int = PARTICLES_VERSION) -> list[RawBank]:
    """The banks (type 32, numbered from 0) that hold `particles`; before version 2 `from_signal` is lost.

    Raises TruthError for values that do not fit.
    """
    if not 0 <= version <= _MAX_VERSION:
        raise TruthError(RejectReason.BAD_VERSION, f"MC particles: version {version}, 0..{_MAX_VERSION} are written")
    parts = [_U32.pack(len(particles))]
    for particle in particles:
        try:
            parts.append(_pack_particle(particle, version))
        except (struct.error, OverflowError) as error:
            raise TruthError(RejectReason.OVERSIZED, f"MC particle {particle.key}: {error}") from error
    data = memoryview(b"".join(parts))
    return [
        RawBank(BankType.MC_TRACKS, version, number, data[start : start + CHUNK_SIZE])
        for number, start in enumerate(range(0, len(data), CHUNK_SIZE))
    ]


def _pack_particle(particle: McParticle, version: int) -> bytes:
    it = particle
    flags = (
        it.is_long,
        it.is_down,
        it.has_velo,
        it.has_ut,
        it.has_scifi,
        it.from_b,
        it.from_c,
        it.from_strange,
        it.from_signal,
    )
    parts = [
        _KINEMATICS.pack(it.key, it.pid, it.p, it.pt, it.eta, it.phi, it.vertex_x, it.vertex_y, it.vertex_z),
        bytes(flags if version >= _SIGNAL_FLAG_VERSION else flags[:-1]),
        _ANCESTRY.pack(
            it.mother_key, it.mother_pid, it.dom_key, it.dom_pid, it.dom_pt, it.dom_tau, it.charge, it.n_pvs
        ),
    ]
    parts += [struct.pack(f"<{1 + len(ids)}I", len(ids), *ids) for ids in (it.velo_ids, it.ut_ids, it.scifi_ids)]
    return b"".join(parts)


def decode_vertices(bank: RawBank) -> list[McVertex]:
    """The primary vertices of an event from its bank of type 33.  Raises TruthError."""
    if bank.type != BankType.MC_VERTICES:
        raise TruthError(
            RejectReason.MISMATCH, f"MC vertices: bank type {BankType.MC_VERTICES:d} expected, {bank.type} found"
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
    return RawBank(BankType.MC_VERTICES, version, 0, memoryview(b"".join(parts)))
