"""Truth banks of many particles at once, from columns: the same bytes as `encode_particles`, for fast simulations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import RejectReason, TruthError
from .raw_bank import BankType, RawBank
from .truth import CHUNK_SIZE, PARTICLES_VERSION

# Type-32 particle of bank version 2 up to its list of VELO ids (formats.md B12); names as in McParticle.
_PARTICLE = np.dtype(
    [
        ("key", "<u4"),
        ("pid", "<i4"),
        *((name, "<f4") for name in ("p", "pt", "eta", "phi", "vertex_x", "vertex_y", "vertex_z")),
        *((name, "u1") for name in ("is_long", "is_down", "has_velo", "has_ut", "has_scifi")),
        *((name, "u1") for name in ("from_b", "from_c", "from_strange", "from_signal")),
        *((name, "<i4") for name in ("mother_key", "mother_pid", "dom_key", "dom_pid")),
        *((name, "<f4") for name in ("dom_pt", "dom_tau", "charge")),
        ("n_pvs", "<u4"),
        ("n_velo_ids", "<u4"),
    ]
)
# What McParticle has where nothing is given; all else is 0.
_DEFAULTS = {"mother_key": -1, "dom_key": -1}
# The counts of the UT and SciFi lists, which are empty.
_EMPTY_LISTS = 8


def encode_particle_columns(
    columns: Mapping[str, ArrayLike], velo_ids: NDArray[np.uint32], n_velo_ids: NDArray[np.int64]
) -> list[RawBank]:
    """The banks (type 32, version 2) of particles with VELO hits only.

    `columns` maps fields of McParticle to one value per particle (or one for all); fields left out have McParticle's
    defaults. `velo_ids` holds the LHCbIDs of the first particle, then those of the second ...; `n_velo_ids` tells how
    many each has. Raises TruthError if these do not add up or a column is unknown.
    """
    if int(n_velo_ids.sum()) != len(velo_ids):
        raise TruthError(RejectReason.BAD_SIZE, f"MC particles: {n_velo_ids.sum()} ids announced, {len(velo_ids)} came")
    if unknown := set(columns) - set(_PARTICLE.names or ()):
        raise TruthError(RejectReason.MALFORMED, f"MC particles: there is no field {sorted(unknown)}")
    n = len(n_velo_ids)
    particles = np.zeros(n, dtype=_PARTICLE)
    for name, values in (_DEFAULTS | dict(columns)).items():
        particles[name] = values
    particles["n_velo_ids"] = n_velo_ids
    # Byte offsets of the particles and of their ids in the data.
    ids_before = np.cumsum(n_velo_ids) - n_velo_ids
    start = 4 + np.arange(n) * (_PARTICLE.itemsize + _EMPTY_LISTS) + 4 * ids_before
    id_start = 4 * np.arange(len(velo_ids)) + np.repeat(start + _PARTICLE.itemsize - 4 * ids_before, n_velo_ids)
    data = np.zeros(4 + n * (_PARTICLE.itemsize + _EMPTY_LISTS) + 4 * len(velo_ids), dtype=np.uint8)
    data[:4] = np.frombuffer(n.to_bytes(4, "little"), dtype=np.uint8)
    data[start[:, None] + np.arange(_PARTICLE.itemsize)] = particles.view(np.uint8).reshape(n, _PARTICLE.itemsize)
    data[id_start[:, None] + np.arange(4)] = velo_ids.astype("<u4").view(np.uint8).reshape(-1, 4)
    payload = memoryview(data.tobytes())
    return [
        RawBank(BankType.MC_TRACKS, PARTICLES_VERSION, number, payload[at : at + CHUNK_SIZE])
        for number, at in enumerate(range(0, len(payload), CHUNK_SIZE))
    ]
