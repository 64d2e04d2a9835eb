"""Primary vertices of each half of the VELO against truth (docs/physics/velo-halves.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.geometry.ideal_velo import SENSORS_PER_MODULE
from hltnode.processing.lhcb.offline.validation.checker.particles import ID_BITS, ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.vertices import (
    MIN_TRACKS,
    VertexCounts,
    match_vertices,
    vertex_residuals,
)
from hltnode.processing.lhcb.primary_vertices.halves.collections import (
    MAX_HALF_PAIRS,
    MAX_HALF_VERTICES,
    N_HALVES,
    VeloHalf,
    half_distance,
    half_pair_count,
    half_pair_vertices,
    half_side,
    half_vertex,
    half_vertex_count,
)
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.checks.binning import CENTRAL_68
from hltnode.processing.offline.checks.counts import ratio
from hltnode.processing.offline.sorting import distinct
from hltnode.protocol.lhcb.lhcb_id import velo_channel
from hltnode.protocol.lhcb.truth import McVertex

HALF_COLUMNS = (
    *(half_vertex_count, half_vertex, half_side),
    *(half_pair_count, half_pair_vertices, *half_distance.values()),
)
"""Columns that an engine must retain."""
MIN_MODULES = 3
"""A half sees a particle that has hits in this many of its modules."""
AT_COLLISION = 0.01
"""mm: a particle comes straight from a collision if its origin is nearer. Truth of particles has single precision."""
WIDER = 5.0
"""Range of residuals in that of vertices of all tracks: the tracks of an open half begin far from the beam."""
NAMES = {VeloHalf.VELO_HALF_C: "c", VeloHalf.VELO_HALF_A: "a"}
_FIELDS = ("x", "y", "z", "c00", "c11", "c22")


def has_halves(sequence: AlgorithmSequence) -> bool:
    """Whether a sequence finds vertices of the VELO halves."""
    return set(HALF_COLUMNS) <= set(sequence.columns)


@dataclass(frozen=True, slots=True, eq=False)
class HalfVertices:
    """Vertices of one event: f32[n, 6] = x, y, z (mm) and their variances (mm²) of each half; and its pairs.

    distances: f64[pairs, 3], mm, side A minus side C. errors: f64[pairs, 3], mm, of these.
    """

    by_half: tuple[NDArray[np.float32], ...]
    distances: Float64Array
    errors: Float64Array


def read_half_vertices(workspace: Workspace) -> list[HalfVertices]:
    """The vertices of each event of a batch."""
    n = workspace.n_events
    vertices = workspace.fetch(half_vertex.name).reshape(-1, MAX_HALF_VERTICES)[:n]
    values = np.stack([vertices[name] for name in _FIELDS], axis=2).astype(np.float32)
    side = workspace.fetch(half_side.name).reshape(-1, MAX_HALF_VERTICES)[:n]
    pairs = workspace.fetch(half_pair_vertices.name).reshape(-1, MAX_HALF_PAIRS, N_HALVES)[:n].astype(np.int64)
    distance = np.stack(
        [workspace.fetch(column.name).reshape(-1, MAX_HALF_PAIRS)[:n] for column in half_distance.values()], axis=2
    ).astype(np.float64)
    n_vertices, n_pairs = (workspace.fetch(column.name)[:n] for column in (half_vertex_count, half_pair_count))
    found = []
    for event in range(n):
        of_event, sides = values[event, : n_vertices[event]], side[event, : n_vertices[event]]
        of_pairs = of_event[pairs[event, : n_pairs[event]], 3:].astype(np.float64)
        found.append(
            HalfVertices(
                tuple(of_event[sides == half] for half in VeloHalf),
                distance[event, : n_pairs[event]],
                np.sqrt(of_pairs.sum(axis=1)),
            )
        )
    return found


def tracks_of_halves(particles: ParticleTable, places: Sequence[Float64Array]) -> list[Int64Array]:
    """For each event i64[2, collisions]: the particles straight from each collision that each half sees.

    places: of the collisions of each event, f64[n, 3], mm.
    """
    seen = _seen_by_halves(particles)
    ends = np.searchsorted(particles.event, np.arange(len(places) + 1))
    counts = []
    for event, place in enumerate(places):
        rows = slice(ends[event], ends[event + 1])
        of_event = np.zeros((N_HALVES, len(place)), np.int64)
        if len(place):
            distance = np.linalg.norm(particles.origin[rows][:, None] - place[None, :], axis=2)
            straight = distance.min(axis=1) < AT_COLLISION
            for half in VeloHalf:
                nearest = distance.argmin(axis=1)[straight & seen[half, rows]]
                of_event[half] = np.bincount(nearest, minlength=len(place))
        counts.append(of_event)
    return counts


def _seen_by_halves(particles: ParticleTable) -> NDArray[np.bool_]:
    """bool[2, particles]: hits in MIN_MODULES modules of each half."""
    ids = (particles.velo.key & np.uint64((1 << ID_BITS) - 1)).astype(np.uint32)
    module = velo_channel(ids)[0].astype(np.int64) // SENSORS_PER_MODULE
    in_module = distinct(particles.velo.owner << 6 | module)
    seen = np.zeros((N_HALVES, len(particles)), bool)
    for half in VeloHalf:
        of_half = in_module[in_module % N_HALVES == half] >> 6
        seen[half] = np.bincount(of_half, minlength=len(particles)) >= MIN_MODULES
    return seen


def _counts_of_halves() -> tuple[VertexCounts, ...]:
    return tuple(VertexCounts(residuals=vertex_residuals(WIDER)) for _ in VeloHalf)


@dataclass(slots=True)
class HalfVertexCounts:
    """Counts of the vertices of each half, and of collisions that both halves see."""

    by_half: tuple[VertexCounts, ...] = field(default_factory=_counts_of_halves)
    collisions: int = 0
    found: int = 0
    distances: list[Float64Array] = field(default_factory=list)
    errors: list[Float64Array] = field(default_factory=list)

    def add(
        self, found: Sequence[HalfVertices], particles: ParticleTable, collisions: Sequence[Sequence[McVertex] | None]
    ) -> None:
        """Count the events of a batch; those without truth of collisions have None."""
        places = [np.array([(c.x, c.y, c.z) for c in of or ()], np.float64).reshape(-1, 3) for of in collisions]
        seen = tracks_of_halves(particles, places)
        for vertices, place, n_tracks, of_event in zip(found, places, seen, collisions, strict=True):
            self.distances.append(vertices.distances)
            self.errors.append(vertices.errors)
            if of_event is None:
                continue
            in_both = np.ones(len(place), bool)
            for half in VeloHalf:
                pvs = vertices.by_half[half]
                of_half = [McVertex(n, *xyz) for n, xyz in zip(n_tracks[half].tolist(), place.tolist(), strict=True)]
                self.by_half[half].add_event(pvs, of_half)
                in_both &= _found(pvs, place)
            reconstructible = (n_tracks >= MIN_TRACKS).all(axis=0)
            self.collisions += int(reconstructible.sum())
            self.found += int((reconstructible & in_both).sum())

    def result(self) -> dict[str, Any]:
        """The JSON object "halves"; rates are None if the denominator is 0, lengths in µm."""
        result: dict[str, Any] = {}
        for half in VeloHalf:
            counts = self.by_half[half]
            residuals = {name: residual.result()["summary"] for name, residual in counts.residuals.items()}
            result[NAMES[half]] = {**counts.result(), "resolution": residuals}
        distance = np.concatenate([np.zeros((0, 3)), *self.distances])
        error = np.concatenate([np.zeros((0, 3)), *self.errors])
        result["both"] = {
            "reconstructible": self.collisions,
            "reconstructed": self.found,
            "efficiency": ratio(self.found, self.collisions),
            "pairs": len(distance),
            "distance": {
                **{f"d{axis}": _width(1000 * distance[:, i]) for i, axis in enumerate("xyz")},
                **{f"pull_{axis}": _width(distance[:, i] / error[:, i]) for i, axis in enumerate("xyz")},
            },
        }
        return result


def _found(pvs: NDArray[np.float32], place: Float64Array) -> Mask:
    found = np.zeros(len(place), bool)
    nearest, matched = match_vertices(pvs.astype(np.float64), place)
    found[nearest[matched]] = True
    return found


def _width(values: Float64Array) -> dict[str, float] | None:
    """Median, half of the central 68 %, and the error of the median of a normal distribution; None without values."""
    if not len(values):
        return None
    low, median, high = np.quantile(values, [(1 - CENTRAL_68) / 2, 0.5, (1 + CENTRAL_68) / 2])
    width = (high - low) / 2
    error = np.sqrt(np.pi / 2 / len(values)) * width
    return {"median": float(median), "median_error": float(error), "width": float(width)}
