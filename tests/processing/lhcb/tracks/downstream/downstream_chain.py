"""Runs the search for downstream tracks on seeds and UT hits that a test gives, and returns the output by event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.codegen import kernel_list
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.tracks.downstream.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.tracks.downstream.field import field_record
from hltnode.processing.lhcb.tracks.downstream.ghost_network import DownstreamNetwork
from hltnode.processing.lhcb.tracks.downstream.search_ut import search_ut
from hltnode.processing.lhcb.tracks.downstream.select_tracks import select_tracks
from hltnode.processing.lhcb.tracks.long import collections as long
from hltnode.processing.lhcb.ut.collections import N_BINS, N_BINS_OF_LAYER
from tests.processing.framework.chain_builder import build_kernels
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size
from tests.processing.framework.session_folders import session_folder

PADDING = 16
UT_COLUMNS = ("x", "z", "y_begin", "y_end")
SEED_COLUMNS = ("x", "y", "tx", "ty", "curvature", "quality", "hit_count", "hits")

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class DownstreamEvent:
    """Seeds and UT hits of an event by column; `long`: columns hits and ut_hits of its long tracks; number of SciFi
    hits."""

    seeds: Columns
    ut: Columns
    long: Columns
    n_scifi: int


@cache
def downstream_kernels() -> KernelSources:
    """The kernels and their forms for the CPU, compiled once."""
    folder = session_folder("hltnode-downstream-")
    (folder / "kernels.h").write_text(kernel_list((search_ut, select_tracks), search_ut.source))
    kernels = KernelSources("kernels.h", (PROCESSING, folder), str(folder / "kernels.so"))
    build_kernels(kernels)
    return kernels


def one_thread(*, common: bool) -> Launch:
    """The common kernels, or their forms for the CPU with eight lanes."""
    return on_cpu("baseline", downstream_kernels(), common=common)


def blocks_of(block_size: int, *, backward: bool = False) -> Launch:
    """Blocks of this number of emulated threads."""
    return with_block_size(block_size, backward=backward, kernels=downstream_kernels())


def run_downstream(
    events: Sequence[DownstreamEvent],
    launch: Launch | None = None,
    *,
    search: Algorithm = search_ut,
    select: Algorithm = select_tracks,
    parameters: LongTrackParameters | None = None,
    network: DownstreamNetwork | None = None,
) -> tuple[list[dict[str, NDArray[Any]]], list[dict[str, NDArray[Any]]], NDArray[np.uint32]]:
    """Candidates and tracks of each event by column, and the flags of the events. Without `launch` by the forms for the
    CPU."""
    n = len(events)
    ut_offset = np.concatenate([[0], np.cumsum([len(event.ut["x"]) + PADDING for event in events])])
    scifi_offset = np.concatenate([[0], np.cumsum([event.n_scifi + PADDING for event in events])])
    given: dict[str, NDArray[Any]] = {
        "downstream_field": np.frombuffer(field_record(parameters or LongTrackParameters.builtin()), np.uint8),
        "downstream_network": np.frombuffer((network or DownstreamNetwork.builtin()).to_bytes(), np.uint8),
        "scifi_hits.offset": scifi_offset,
        "scifi_hits.count": np.array([event.n_scifi for event in events]),
        "ut_hits.offset": ut_offset,
        "ut_hits.count": np.array([len(event.ut["x"]) for event in events]),
        "scifi_seeds.count": np.array([len(event.seeds["x"]) for event in events]),
        "long_tracks.count": np.array([len(event.long["hits"]) for event in events]),
    }
    for name in UT_COLUMNS:
        given[f"ut_hits.{name}"] = _placed([event.ut[name] for event in events], ut_offset)
    bins = [bins_of_hits(event.ut["x"], event.ut["z"]) for event in events]
    given["ut_hits.bin_begin"] = np.concatenate([of_event["bin_begin"] for of_event in bins])
    for name in ("bin_order", "bin_x", "bin_z"):
        given[f"ut_hits.{name}"] = _placed([of_event[name] for of_event in bins], ut_offset)
    seed_places = np.arange(n + 1) * long.MAX_SEEDS_PER_EVENT
    for name in SEED_COLUMNS:
        given[f"scifi_seeds.{name}"] = _placed([event.seeds[name] for event in events], seed_places)
    long_places = np.arange(n + 1) * long.MAX_TRACKS_PER_EVENT
    for name in ("hits", "ut_hits"):
        given[f"long_tracks.{name}"] = _placed([event.long[name] for event in events], long_places)
    size = 16 * int(max(ut_offset[-1], scifi_offset[-1]) + 1)
    limits = BatchLimits(events=n, meps=1, input_bytes=size, rows=1)
    launch = launch or one_thread(common=False)
    columns = run_algorithms((search, select), given, n, limits, launch)
    candidates = [
        _rows(columns, "downstream_candidates", long.MAX_SEEDS_PER_EVENT, i, len(event.seeds["x"]))
        for i, event in enumerate(events)
    ]
    counts = columns["downstream_tracks.count"]
    tracks = [_rows(columns, "downstream_tracks", MAX_TRACKS_PER_EVENT, i, int(counts[i])) for i in range(n)]
    return candidates, tracks, columns["events.flags"][:n]


def bins_of_hits(x: NDArray[Any], z: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The order of UT hits by bins of 7 mm, layer by layer, as the matching makes it: columns of ut_hits. Hits of bins
    with more than 64 are at x = 1e6."""
    x, z = np.asarray(x, np.float32), np.asarray(z, np.float32)
    with np.errstate(invalid="ignore"):
        of_layer = (x + np.float32(0.5 * 7 * N_BINS_OF_LAYER)) * np.float32(1 / 7)
    of_layer = np.clip(np.nan_to_num(of_layer, nan=0.0), 0, N_BINS_OF_LAYER - 1).astype(np.int64)
    bins = np.searchsorted([2350.0, 2485.0, 2620.0], z, side="right") * N_BINS_OF_LAYER + of_layer
    order, counts = np.argsort(bins, kind="stable"), np.bincount(bins, minlength=N_BINS)
    return {
        "bin_begin": np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32),
        "bin_order": order.astype(np.uint16),
        "bin_x": np.where(counts[bins[order]] > 64, np.float32(1e6), x[order]),
        "bin_z": z[order],
    }


def _placed(parts: Sequence[NDArray[Any]], offsets: NDArray[np.int64]) -> NDArray[Any]:
    width = max((part.shape[1] for part in parts if part.ndim == 2), default=1)
    column = np.zeros(int(offsets[-1]) * width, parts[0].dtype)
    for part, first in zip(parts, offsets, strict=False):
        column[first * width : first * width + part.size] = part.ravel()
    return column


def _rows(columns: Columns, collection: str, places: int, event: int, n: int) -> dict[str, NDArray[Any]]:
    rows = {}
    for name, column in columns.items():
        if name.startswith(f"{collection}.") and not name.endswith(".count"):
            part = column.reshape(len(columns["scifi_seeds.count"]), places, -1)[event, :n]
            rows[name.partition(".")[2]] = part if part.shape[1] > 1 else part[:, 0]
    return rows
