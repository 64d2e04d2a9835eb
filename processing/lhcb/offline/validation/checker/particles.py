"""Monte Carlo particles of the events of a batch as columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.protocol.lhcb.lhcb_id import in_2022_scheme, without_orientation
from hltnode.protocol.lhcb.truth import McParticle, encode_particles
from hltnode.protocol.lhcb.truth_columns import McParticleColumns, decode_particle_columns, join_particle_columns

ELECTRON, MUON = 11, 13
# Bits of a LHCbID below the number of its event in a word that can be compared and sorted.
ID_BITS = 32


@dataclass(frozen=True, slots=True, eq=False)
class OwnedIds:
    """LHCbIDs of one sub-detector and the particles that made them, sorted by `key`; a key may have several owners.

    key: u64[n] = event << 32 | id without orientation bits; owner: i64[n] rows of particles. No repeats within a
    particle. count: i64[particles] ids of each particle.
    """

    key: NDArray[np.uint64]
    owner: Int64Array
    count: Int64Array

    @classmethod
    def of(cls, event: Int64Array, ids: NDArray[np.uint32], n_ids: Int64Array) -> Self:
        """The ids of particles, one row each: the event of each particle, its ids one after the other."""
        owner = np.repeat(np.arange(len(n_ids)), n_ids)
        key = id_keys(event[owner], in_2022_scheme(ids))
        order = np.lexsort((owner, key))
        key, owner = key[order], owner[order]
        first = np.ones(len(key), dtype=bool)
        first[1:] = (key[1:] != key[:-1]) | (owner[1:] != owner[:-1])
        return cls(key[first], owner[first], np.bincount(owner[first], minlength=len(n_ids)))


def id_keys(event: Int64Array, ids: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Words (u64) that identify a hit among those of all events of a batch, orientation bits left out."""
    keys: NDArray[np.uint64] = event.astype(np.uint64) << np.uint64(ID_BITS) | without_orientation(ids)
    return keys


@dataclass(frozen=True, slots=True, eq=False)
class ParticleTable:
    """The particles of `n_events` events with any hit, one row each; p, pt in MeV, origin f64[n, 3] in mm.

    `mother` is the row of the particle's mother, -1 if it has no row; `mother_key`, `mother_pid` are its key in the
    event and its kind, -1 and 0 without mother. `n_pvs`: collisions of the particle's event with at least four tracks.
    """

    n_events: int
    event: Int64Array
    pid: Int64Array
    p: Float64Array
    pt: Float64Array
    eta: Float64Array
    phi: Float64Array
    origin: Float64Array
    n_pvs: Int64Array
    mother: Int64Array
    mother_key: Int64Array
    mother_pid: Int64Array
    is_electron: Mask
    is_long: Mask
    is_down: Mask
    has_velo: Mask
    has_ut: Mask
    has_scifi: Mask
    from_beauty: Mask
    from_charm: Mask
    from_strange: Mask
    from_signal: Mask
    velo: OwnedIds
    ut: OwnedIds
    scifi: OwnedIds

    @classmethod
    def of_events(cls, events: Sequence[McParticleColumns]) -> Self:
        """The table of the particles of events 0, 1, ... (truth banks of type 32, docs/formats/truth-banks.md)."""
        event = np.repeat(np.arange(len(events)), [len(columns) for columns in events])
        columns = join_particle_columns([*events, decode_particle_columns([])])
        seen = columns.n_velo_ids + columns.n_ut_ids + columns.n_scifi_ids > 0
        # Particles that are left out have no ids: the ids of the rest stay one after the other.
        values, event = columns.values[seen], event[seen]
        flags = {
            name: values[name] != 0
            for name in ("is_long", "is_down", "has_velo", "has_ut", "has_scifi", "from_strange", "from_signal")
        }
        return cls(
            n_events=len(events),
            event=event,
            pid=values["pid"].astype(np.int64),
            p=values["p"].astype(np.float64),
            pt=values["pt"].astype(np.float64),
            eta=values["eta"].astype(np.float64),
            phi=values["phi"].astype(np.float64),
            origin=np.stack([values[f"vertex_{axis}"] for axis in "xyz"], axis=1).astype(np.float64),
            n_pvs=values["n_pvs"].astype(np.int64),
            mother=_rows_of_mothers(event, values["key"].astype(np.int64), values["mother_key"].astype(np.int64)),
            mother_key=values["mother_key"].astype(np.int64),
            mother_pid=np.where(values["mother_key"] >= 0, values["mother_pid"], 0).astype(np.int64),
            is_electron=np.abs(values["pid"]) == ELECTRON,
            from_beauty=values["from_b"] != 0,
            from_charm=values["from_c"] != 0,
            **flags,
            velo=OwnedIds.of(event, columns.velo_ids, columns.n_velo_ids[seen]),
            ut=OwnedIds.of(event, columns.ut_ids, columns.n_ut_ids[seen]),
            scifi=OwnedIds.of(event, columns.scifi_ids, columns.n_scifi_ids[seen]),
        )

    @classmethod
    def of_particles(cls, events: Sequence[Sequence[McParticle]]) -> Self:
        """The table of particles given one by one, event by event."""
        return cls.of_events([decode_particle_columns(encode_particles(event)) for event in events])

    def __len__(self) -> int:
        return len(self.p)

    @property
    def in_acceptance(self) -> Mask:
        """2 < eta < 5, the range of the spectrometer."""
        return (self.eta > 2) & (self.eta < 5)

    @property
    def is_prompt(self) -> Mask:
        """Not from the decay of a b, c or s hadron."""
        return ~(self.from_beauty | self.from_charm | self.from_strange)


def _rows_of_mothers(event: Int64Array, key: Int64Array, mother_key: Int64Array) -> Int64Array:
    if len(key) == 0:
        return np.empty(0, dtype=np.int64)
    own = event << ID_BITS | key
    order = np.argsort(own)
    wanted = np.where(mother_key >= 0, event << ID_BITS | mother_key, -1)
    place = order[np.minimum(np.searchsorted(own[order], wanted), len(own) - 1)]
    return np.where(own[place] == wanted, place, -1)
