"""A toy detector for lines, with random events: tracks with hits, which may belong to vertices, and pairs of tracks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import F32, U8, U16, U32, Collection, Placement
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.selection.expressions.expression import Expression
from hltnode.processing.selection.expressions.units import ENERGY, LENGTH
from hltnode.processing.selection.lines.inputs import ColumnField, DerivedField, Input, RelatedField, exists
from hltnode.processing.selection.reports.reported import NO_HIT, Hits, Parts, Reported

MAX_TRACKS, MAX_VERTICES, MAX_PAIRS, MAX_HITS, MAX_NEAR = 40, 8, 100, 100, 80
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 1e38, -1e38, 88.0, -87.0], np.float32)

_vertices = Collection(
    "toy_vertices",
    capacity=lambda limits: limits.events * MAX_VERTICES,
    placement=Placement.fixed(MAX_VERTICES),
    max_per_event=MAX_VERTICES,
)
vertex_count = _vertices.per_event("count", U32)
vertex_z = _vertices.column("z", F32)
_tracks = Collection(
    "toy_tracks",
    capacity=lambda limits: limits.events * MAX_TRACKS,
    placement=Placement.fixed(MAX_TRACKS),
    max_per_event=MAX_TRACKS,
)
track_count = _tracks.per_event("count", U32)
track_x = _tracks.column("x", F32)
track_pt = _tracks.column("pt", F32)
track_y = _tracks.column("y", F32, width=2)
track_hits = _tracks.column("hits", U16)
track_muon = _tracks.column("muon", U8)
track_vertex = _tracks.column("vertex", U8)
_hits = Collection("toy_hits", capacity=lambda limits: limits.events * MAX_HITS, placement=Placement.fixed(MAX_HITS))
hit_id = _hits.column("id", U32)
track_near = _tracks.column("near", U16, width=MAX_NEAR)
track_n_near = _tracks.column("n_near", U8)
track_far = _tracks.column("far", U16, width=3)
track_partner = _tracks.column("partner", U16)
_pairs = Collection(
    "toy_pairs",
    capacity=lambda limits: limits.events * MAX_PAIRS,
    placement=Placement.fixed(MAX_PAIRS),
    max_per_event=MAX_PAIRS,
)
pair_count = _pairs.per_event("count", U32)
pair_tracks = _pairs.column("tracks", U16, width=2)
event_number = events.per_event("number", U32)
event_type = events.per_event("type", U32)

vertices = Input(
    "vertices", "vertices", {"z": ColumnField(vertex_z, "", LENGTH)}, collection=_vertices, count=vertex_count
)
tracks = Input(
    "tracks",
    "tracks",
    {
        "x": ColumnField(track_x, "", LENGTH),
        "pt": ColumnField(track_pt, "", ENERGY),
        "a": ColumnField(track_y, "", element=0),
        "b": ColumnField(track_y, "", element=1),
        "hits": ColumnField(track_hits, ""),
        "is_muon": DerivedField(lambda t: t._muon != 0, ""),
        "_muon": ColumnField(track_muon, ""),
        "vertex": RelatedField(vertices, ColumnField(track_vertex, ""), ""),
        "has_vertex": DerivedField(lambda t: exists(t.vertex), ""),
    },
    collection=_tracks,
    count=track_count,
)
muons = tracks.those("muons", "muons", lambda t: t.is_muon)
event = Input(
    "events",
    "events",
    {"number": ColumnField(event_number, ""), "type": ColumnField(event_type, ""), "n": ColumnField(track_count, "")},
)
pairs = Input(
    "pairs",
    "pairs of tracks",
    {
        "first": RelatedField(tracks, ColumnField(pair_tracks, "", element=0), ""),
        "second": RelatedField(tracks, ColumnField(pair_tracks, "", element=1), ""),
    },
    collection=_pairs,
    count=pair_count,
    constituents=("first", "second"),
)
REPORTS = {
    one.collection: one
    for one in (
        Reported(
            input=tracks,
            class_id=10010,
            numbers=lambda t: (t.x, t.pt, 2 * t.hits - 1.5),
            hits=(Hits(track_near, hit_id, track_n_near), Hits(track_far, hit_id, through=track_partner)),
        ),
        Reported(
            input=pairs,
            class_id=10030,
            numbers=lambda p: (p.first.x - p.second.x,),
            parts=(Parts(pair_tracks, tracks),),
        ),
    )
}
"""The near hits of a track, and the far hits of its partner."""
EVENT_WORDS: tuple[Expression, ...] = (event.candidate().number,)


def random_events(n: int, seed: int, *, special: float = 0.1) -> dict[str, NDArray[Any]]:
    """Columns of n events; `special`: the share of numbers that are NaN, infinite, denormal or the like."""
    rng = np.random.default_rng(seed)

    def numbers(size: int) -> NDArray[np.float32]:
        values = (rng.normal(0, 1, size) * 10.0 ** rng.integers(-2, 4, size)).astype(np.float32)
        rare = rng.random(size) < special
        values[rare] = rng.choice(SPECIAL, int(rare.sum()))
        return values

    n_tracks, n_vertices = rng.integers(0, MAX_TRACKS + 1, n), rng.integers(0, MAX_VERTICES + 1, n)
    return {
        vertex_count.name: n_vertices,
        vertex_z.name: numbers(n * MAX_VERTICES),
        track_count.name: n_tracks,
        track_x.name: numbers(n * MAX_TRACKS),
        track_pt.name: numbers(n * MAX_TRACKS),
        track_y.name: numbers(2 * n * MAX_TRACKS),
        track_hits.name: rng.integers(0, 40, n * MAX_TRACKS),
        track_muon.name: rng.integers(0, 2, n * MAX_TRACKS),
        track_vertex.name: rng.choice([*range(MAX_VERTICES), 255], n * MAX_TRACKS),
        event_number.name: rng.integers(0, 2**32, n),
        event_type.name: rng.integers(0, 2**16, n),
        hit_id.name: rng.integers(0, 2**32, n * MAX_HITS),
        track_near.name: rng.integers(0, MAX_HITS, MAX_NEAR * n * MAX_TRACKS),
        track_n_near.name: rng.integers(0, MAX_NEAR + 1, n * MAX_TRACKS) * np.repeat(rng.integers(0, 2, n), MAX_TRACKS),
        track_far.name: rng.choice([*range(MAX_HITS), NO_HIT], 3 * n * MAX_TRACKS),
        track_partner.name: rng.integers(0, MAX_TRACKS, n * MAX_TRACKS),
        pair_count.name: np.where(n_tracks > 0, np.minimum(rng.integers(0, 2 * MAX_PAIRS, n), MAX_PAIRS), 0),
        pair_tracks.name: np.repeat(n_tracks, 2 * MAX_PAIRS) * rng.random(2 * n * MAX_PAIRS) // 1,
    }


def limits_of(given: Mapping[str, NDArray[Any]], n_lines: int) -> BatchLimits:
    return BatchLimits(events=len(given[event_number.name]), lines=n_lines)
