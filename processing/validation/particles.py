"""Monte Carlo particles of one event as columns, and the categories in which efficiencies are given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.lhcb_id import without_orientation
from hltnode.protocol.truth import McParticle

Mask = NDArray[np.bool_]

ELECTRON = 11


@dataclass(frozen=True, slots=True, eq=False)
class ParticleTable:
    """The particles of an event that left any hit, one row each; p, pt in MeV.

    `velo_ids` (u32, without orientation bits, no repeats within a particle) and `velo_owner` (row of the particle that
    made each) list the VELO hits of all of them, sorted by id. An id may have several owners.
    """

    p: NDArray[np.float32]
    pt: NDArray[np.float32]
    eta: NDArray[np.float32]
    is_electron: Mask
    is_long: Mask
    has_velo: Mask
    from_beauty: Mask
    from_strange: Mask
    n_velo_hits: NDArray[np.int64]
    velo_ids: NDArray[np.uint32]
    velo_owner: NDArray[np.int64]

    @classmethod
    def of_event(cls, particles: Sequence[McParticle]) -> Self:
        """The table of the particles of an event (truth bank type 32, formats.md B12)."""
        seen = [p for p in particles if len(p.velo_ids) or len(p.ut_ids) or len(p.scifi_ids)]
        kinematics = np.array([(p.p, p.pt, p.eta) for p in seen], dtype=np.float32).reshape(-1, 3)
        flags = np.array(
            [(p.is_long, p.has_velo, p.from_b, p.from_strange) for p in seen],
            dtype=bool,
        ).reshape(-1, 4)
        owner = np.repeat(np.arange(len(seen)), [len(p.velo_ids) for p in seen])
        ids = np.fromiter(chain.from_iterable(p.velo_ids for p in seen), dtype=np.uint32)
        # One sortable word per (id, owner), so that repeats within a particle drop out.
        pairs = np.unique(without_orientation(ids).astype(np.uint64) << np.uint64(32) | owner.astype(np.uint64))
        owner = (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)
        return cls(
            p=kinematics[:, 0],
            pt=kinematics[:, 1],
            eta=kinematics[:, 2],
            is_electron=np.array([abs(p.pid) == ELECTRON for p in seen], dtype=bool),
            is_long=flags[:, 0],
            has_velo=flags[:, 1],
            from_beauty=flags[:, 2],
            from_strange=flags[:, 3],
            n_velo_hits=np.bincount(owner, minlength=len(seen)),
            velo_ids=(pairs >> np.uint64(32)).astype(np.uint32),
            velo_owner=owner,
        )

    def __len__(self) -> int:
        return len(self.p)

    @property
    def in_acceptance(self) -> Mask:
        """2 < eta < 5, the range of the spectrometer."""
        return (self.eta > 2) & (self.eta < 5)


def _long(table: ParticleTable) -> Mask:
    return table.is_long & ~table.is_electron & table.in_acceptance


def _above_5_gev(table: ParticleTable) -> Mask:
    return table.p > 5000


# Names are a stable contract (hltnode validate). No electrons unless named; 2 < eta < 5 except in `velo`
# (reconstruction-facts.md 9).
VELO_CATEGORIES: dict[str, Callable[[ParticleTable], Mask]] = {
    "velo": lambda t: t.has_velo & ~t.is_electron,
    "velo_eta25": lambda t: t.has_velo & ~t.is_electron & t.in_acceptance,
    "long": _long,
    "long_p5": lambda t: _long(t) & _above_5_gev(t),
    "long_from_b": lambda t: _long(t) & t.from_beauty,
    "long_from_b_p5": lambda t: _long(t) & t.from_beauty & _above_5_gev(t),
    "long_strange": lambda t: _long(t) & t.from_strange,
    "electrons_long": lambda t: t.is_long & t.is_electron & t.in_acceptance,
}
