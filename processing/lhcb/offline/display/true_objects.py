"""The truth of a simulated event, for its scene. Particles are drawn through those of their hits that were decoded."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.display.lines_of_tracks import particle_line, straight_y
from hltnode.processing.lhcb.offline.display.reconstructed_objects import ReconstructedObjects
from hltnode.processing.lhcb.offline.display.scene import SceneCollision, SceneHits, SceneParticle
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.lhcb_id import in_2022_scheme, without_orientation
from hltnode.protocol.lhcb.truth import decode_vertices
from hltnode.protocol.lhcb.truth_columns import decode_particle_columns
from hltnode.protocol.raw_data.raw_bank import RawBank


def true_collisions(banks: Sequence[RawBank]) -> tuple[SceneCollision, ...]:
    """Raises TruthError."""
    return tuple(
        SceneCollision(place=(vertex.x, vertex.y, vertex.z), tracks=vertex.n_tracks)
        for bank in banks
        if bank.type == LhcbBankType.MC_VERTICES
        for vertex in decode_vertices(bank)
    )


def true_particles(banks: Sequence[RawBank], found: ReconstructedObjects) -> tuple[SceneParticle, ...]:
    """The particles that have hits. Raises TruthError."""
    columns = decode_particle_columns(banks)
    values = columns.values
    ids = {
        "VELO": _split(columns.velo_ids, columns.n_velo_ids),
        "UT": _split(columns.ut_ids, columns.n_ut_ids),
        "SciFi": _split(columns.scifi_ids, columns.n_scifi_ids),
    }
    places = {name: _Places(hits) for name, hits in found.hits.items() if name in ids}
    particles = []
    for i in range(len(columns)):
        of_particle = {name: places[name].of(of_all[i]) for name, of_all in ids.items() if name in places}
        if not any(map(len, of_particle.values())):
            continue
        origin = np.array([values[f"vertex_{axis}"][i] for axis in "xyz"], dtype=np.float64)
        y_at = straight_y(origin, float(values["eta"][i]), float(values["phi"][i]))
        none = np.empty((0, 3))
        strips = {
            name: found.strips[name].at(hits, y_at) if name in found.strips else none
            for name, hits in of_particle.items()
        }
        velo = found.hits["VELO"].points[of_particle["VELO"]]
        particles.append(
            SceneParticle(
                line=particle_line(
                    origin, velo[np.argsort(velo[:, 2])], strips.get("UT", none), strips.get("SciFi", none)
                ),
                pid=int(values["pid"][i]),
                p=float(values["p"][i]),
                pt=float(values["pt"][i]),
                eta=float(values["eta"][i]),
                mother_pid=int(values["mother_pid"][i]) if values["mother_key"][i] >= 0 else 0,
                is_long=bool(values["is_long"][i]),
                from_beauty=bool(values["from_b"][i]),
                from_signal=bool(values["from_signal"][i]),
            )
        )
    return tuple(particles)


class _Places:
    """Finds hits by their LHCbIDs."""

    def __init__(self, hits: SceneHits) -> None:
        ids = without_orientation(hits.ids)
        self._order = np.argsort(ids)
        self._ids = ids[self._order]

    def of(self, ids: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The places of those that there are."""
        wanted = without_orientation(in_2022_scheme(ids))
        if not len(self._ids):
            return np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(self._ids, wanted), len(self._ids) - 1)
        found: NDArray[np.int64] = self._order[at[self._ids[at] == wanted]]
        return found


def _split(ids: NDArray[np.uint32], counts: NDArray[np.int64]) -> list[NDArray[np.uint32]]:
    return np.split(ids, np.cumsum(counts)[:-1]) if len(counts) else []
