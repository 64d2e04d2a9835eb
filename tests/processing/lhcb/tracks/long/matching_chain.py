"""Runs seeding and matching on hits and VELO tracks that a test gives, and returns the output event by event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.raw_data.raw_data_types import raw_data_types
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.processing.lhcb.scifi.collections import N_ZONES, NO_HIT, ZONE_STRIDE, scifi_types
from hltnode.processing.lhcb.tracks.long.collections import (
    MAX_SEEDS_PER_EVENT,
    MAX_TRACKS_PER_EVENT,
    MAX_X_SEEDS_PER_EVENT,
    long_types,
)
from hltnode.processing.lhcb.tracks.long.parameters import parameter_types
from hltnode.processing.lhcb.tracks.matching.append_matched import append_matched
from hltnode.processing.lhcb.tracks.matching.match_seeds import match_seeds
from hltnode.processing.lhcb.tracks.matching.no_forward_tracks import no_forward_tracks
from hltnode.processing.lhcb.tracks.matching.seed_in_x import seed_in_x
from hltnode.processing.lhcb.tracks.matching.seed_in_y import seed_in_y
from hltnode.processing.lhcb.tracks.matching.seeding_tables import SeedingTables, seeding_types
from hltnode.processing.lhcb.tracks.matching.select_seeding_hits import select_seeding_hits
from hltnode.processing.lhcb.ut.collections import ut_types
from hltnode.processing.lhcb.velo.collections import velo_types
from tests.processing.framework.chain_builder import build_kernels, write_headers
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms
from tests.processing.framework.session_folders import session_folder

SEEDING = (select_seeding_hits, seed_in_x, seed_in_y)
MATCHING = (no_forward_tracks, *SEEDING, match_seeds, append_matched)
PADDING = 8
N_UT_LAYERS = 4


@dataclass(frozen=True, slots=True)
class MatchingEvent:
    """Input of seeding and matching for an event.

    scifi: x in mm at y = 0 by zone, ascending, `scifi_offset` of 24 zones and the end. ut: x, z, y_begin, y_end in any
    order. velo: x, y, tx, ty at z = 770 mm, and `backward`. found: rows of earlier long_tracks, by column.
    """

    scifi_x: NDArray[np.float32]
    scifi_offset: NDArray[np.int64]
    velo: dict[str, NDArray[Any]]
    ut: dict[str, NDArray[Any]]
    used: NDArray[np.uint8] | None = None
    found: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MatchedEvent:
    """Output for an event: flags, x seeds, seeds and long tracks, by column."""

    flags: int
    x_seeds: dict[str, NDArray[Any]]
    seeds: dict[str, NDArray[Any]]
    tracks: dict[str, NDArray[Any]]


@cache
def matching_kernels(*options: str) -> KernelSources:
    """The kernels, built at first use with the given compiler arguments."""
    folder = session_folder("hltnode-matching-")
    chain = Chain(
        name="matching",
        sequence=_Unchecked(MATCHING),
        kernels=KernelSources("generated/matching_kernels.h", (PROCESSING, folder), str(folder / "kernels.so")),
        source=folder / "matching.py",
        readout=LHCB_READOUT,
        subdetectors=frozenset(),
        types=(
            raw_data_types,
            velo_types,
            scifi_types,
            ut_types,
            parameter_types,
            long_types,
            seeding_types,
        ),
    )
    write_headers(chain)
    build_kernels(chain.kernels, *(options or ("-O2",)))
    return chain.kernels


class _Unchecked(AlgorithmSequence):
    """Algorithms without writers of their input: a test gives it."""

    def __post_init__(self) -> None:
        columns = {column.name: column for algorithm in self.algorithms for column in algorithm.columns}
        object.__setattr__(self, "columns", tuple(columns.values()))


def limits_of(events: Sequence[MatchingEvent]) -> BatchLimits:
    """Room for the hits and tracks of these events."""
    hits = sum(len(event.scifi_x) + PADDING for event in events)
    ut_hits = sum(len(event.ut["x"]) + PADDING for event in events)
    tracks = sum(len(event.velo["x"]) + PADDING for event in events)
    return BatchLimits(events=len(events), meps=1, input_bytes=8 * max(hits, 2 * ut_hits, 2 * tracks), rows=1)


def _offsets(sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64) + PADDING)])


def _placed(parts: Sequence[NDArray[Any]], offsets: NDArray[np.int64], n: int = 1) -> NDArray[Any]:
    """Columns of events, placed by event."""
    column = np.zeros(int(offsets[-1]) * n, parts[0].dtype if parts else np.float32)
    for part, first in zip(parts, offsets, strict=False):
        column[first * n : first * n + part.size] = part.ravel()
    return column


def given_columns(events: Sequence[MatchingEvent], tables: SeedingTables) -> dict[str, NDArray[Any]]:
    """The columns that the first algorithms read."""
    scifi = _offsets([len(event.scifi_x) for event in events])
    ut = _offsets([len(event.ut["x"]) for event in events])
    velo = _offsets([len(event.velo["x"]) for event in events])
    zones = np.zeros((len(events), ZONE_STRIDE), np.uint16)
    for row, event in zip(zones, events, strict=True):
        row[: N_ZONES + 1] = event.scifi_offset
        row[N_ZONES + 1 :] = len(event.scifi_x)
    given: dict[str, NDArray[Any]] = {
        "seeding_tables": np.frombuffer(tables.to_bytes(), np.uint8),
        "scifi_hits.offset": scifi,
        "scifi_hits.count": np.array([len(event.scifi_x) for event in events]),
        "scifi_hits.zone_offset": zones,
        "scifi_hits.x": _placed([event.scifi_x for event in events], scifi),
        "ut_hits.offset": ut,
        "ut_hits.count": np.array([len(event.ut["x"]) for event in events]),
        "velo_clusters.offset": 2 * velo,
        "velo_tracks.count": np.array([len(event.velo["x"]) for event in events]),
        "velo_tracks.backward": _placed([event.velo["backward"].astype(np.uint8) for event in events], velo),
    }
    for name in ("x", "z", "y_begin", "y_end"):
        given[f"ut_hits.{name}"] = _placed([event.ut[name].astype(np.float32) for event in events], ut)
    for name in ("x", "y", "tx", "ty"):
        given[f"velo_end.{name}"] = _placed([event.velo[name].astype(np.float32) for event in events], velo)
    if any(event.used is not None for event in events):
        used = [np.zeros(len(e.scifi_x), np.uint8) if e.used is None else e.used for e in events]
        given["scifi_hits.used"] = _placed(used, scifi)
        given["long_tracks.count"] = np.array([len(event.found.get("velo_track", ())) for event in events])
        rows = np.arange(len(events) + 1) * MAX_TRACKS_PER_EVENT
        for name in {name for event in events for name in event.found}:
            parts = [event.found.get(name, np.zeros(0, np.float32)) for event in events]
            width = max((part.shape[1] for part in parts if part.ndim == 2), default=1)
            given[f"long_tracks.{name}"] = _placed(parts, rows, width)
    return given


def run_matching(
    events: Sequence[MatchingEvent],
    tables: SeedingTables,
    launch: Launch | None = None,
    algorithms: Sequence[Algorithm] | None = None,
) -> list[MatchedEvent]:
    """Run seeding and matching, on all hits or on unused hits only."""
    if algorithms is None:
        begins = 1 if any(event.used is not None for event in events) else 0
        algorithms = MATCHING[begins:]
    given = given_columns(events, tables)
    columns = run_algorithms(
        algorithms, given, len(events), limits_of(events), launch or on_cpu("baseline", matching_kernels())
    )
    return [_event(columns, event) for event in range(len(events))]


def _event(columns: dict[str, NDArray[Any]], event: int) -> MatchedEvent:
    def part(collection: str, places: int) -> dict[str, NDArray[Any]]:
        n = int(columns[f"{collection}.count"][event])
        result = {}
        for name, column in columns.items():
            if name.startswith(f"{collection}.") and name != f"{collection}.count":
                width = len(column) // (places * len(columns[f"{collection}.count"]))
                rows = column.reshape(-1, width)[event * places : event * places + n]
                result[name.partition(".")[2]] = rows if width > 1 else rows[:, 0]
        return result

    return MatchedEvent(
        flags=int(columns["events.flags"][event]) if "events.flags" in columns else 0,
        x_seeds=part("x_seeds", MAX_X_SEEDS_PER_EVENT),
        seeds=part("scifi_seeds", MAX_SEEDS_PER_EVENT),
        tracks=part("long_tracks", MAX_TRACKS_PER_EVENT),
    )


def hits_of(row: NDArray[np.uint16]) -> list[int]:
    """The hits of a seed or track."""
    return [int(hit) for hit in row if hit != NO_HIT]
