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
_WORD = 4

# LHCbIDs of all particles, those of the first one first, and how many each has.
IdLists = tuple[NDArray[np.uint32], NDArray[np.int64]]


def encode_particle_columns(
    columns: Mapping[str, ArrayLike], velo: IdLists, ut: IdLists | None = None, scifi: IdLists | None = None
) -> list[RawBank]:
    """The banks (type 32, version 2) of particles.

    `columns` maps fields of McParticle to one value per particle (or one for all); fields left out have McParticle's
    defaults. `velo`, `ut` and `scifi` hold the LHCbIDs; a detector that is not given has none. Raises TruthError if
    these do not add up or a column is unknown.
    """
    n = len(velo[1])
    none = np.empty(0, np.uint32), np.zeros(n, np.int64)
    lists = [none if given is None else given for given in (velo, ut, scifi)]
    for ids, counts in lists:
        if len(counts) != n or int(counts.sum()) != len(ids):
            raise TruthError(
                RejectReason.BAD_SIZE,
                f"MC particles: {int(counts.sum())} ids of {len(counts)} particles announced, "
                f"{len(ids)} ids of {n} particles came",
            )
    if unknown := set(columns) - set(_PARTICLE.names or ()):
        raise TruthError(RejectReason.MALFORMED, f"MC particles: there is no field {sorted(unknown)}")
    particles = np.zeros(n, dtype=_PARTICLE)
    for name, values in (_DEFAULTS | dict(columns)).items():
        particles[name] = values
    particles["n_velo_ids"] = velo[1]
    # A particle's data end with the number of its VELO ids; the other lists have a word with their number before them.
    n_ids = np.sum([counts for _, counts in lists], axis=0, dtype=np.int64)
    sizes = _PARTICLE.itemsize + _WORD * (n_ids + len(lists) - 1)
    at = _WORD + np.cumsum(sizes) - sizes
    data = np.zeros(_WORD + int(sizes.sum()), dtype=np.uint8)
    data[:_WORD] = np.frombuffer(n.to_bytes(_WORD, "little"), dtype=np.uint8)
    data[at[:, None] + np.arange(_PARTICLE.itemsize)] = particles.view(np.uint8).reshape(n, _PARTICLE.itemsize)
    at += _PARTICLE.itemsize
    for number, (ids, counts) in enumerate(lists):
        if number:
            _put_words(data, at, counts)
            at += _WORD
        before = np.cumsum(counts) - counts
        _put_words(data, np.repeat(at - _WORD * before, counts) + _WORD * np.arange(len(ids)), ids)
        at += _WORD * counts
    payload = memoryview(data.tobytes())
    return [
        RawBank(BankType.MC_TRACKS, PARTICLES_VERSION, number, payload[at : at + CHUNK_SIZE])
        for number, at in enumerate(range(0, len(payload), CHUNK_SIZE))
    ]


def _put_words(data: NDArray[np.uint8], at: NDArray[np.int64], values: NDArray[np.integer]) -> None:
    data[at[:, None] + np.arange(_WORD)] = values.astype("<u4").view(np.uint8).reshape(-1, _WORD)
