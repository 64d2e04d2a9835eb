"""From the raw banks of an event to the picture of a slice, through the sequence of the chain."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.tpc.collections import (
    cluster_inputs,
    cluster_places,
    first_of_event,
    geometry,
    link_down,
    link_up,
    next_cluster,
    row_counts,
    slice_first,
    start_count,
    start_hit,
    start_hits,
    track,
    track_cluster,
    track_cluster_count,
    track_count,
    weights,
)
from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.offline.counted import counted
from hltnode.processing.offline.shown_event import accepting_lines, run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.alice.tpc_banks import CLUSTER, N_ROWS, places_of_clusters
from hltnode.protocol.raw_data.raw_bank import RawBank

LIMITS = BatchLimits(events=1, meps=1, input_bytes=48 << 20, rows=1 << 11)
"""One event of up to six million clusters, from all 1,728 sources and ODIN."""
NO_CLUSTER = 0xFFFF
_RETAINED = (
    *(cluster_inputs, cluster_places, link_up, link_down, next_cluster, row_counts, slice_first),
    *(start_count, start_hit, track_count, track, track_cluster_count, track_cluster, first_of_event, weights),
)
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePicture:
    """A slice of an event, as the chain sees it.

    x, y, drift: f64[clusters] in cm. links, deleted_links: i64[links, 2], pairs of clusters two rows apart. seeds:
    i64[seeds], first cluster of each. tracklets: clusters whose longest tracklet is the same, i64 each, rows upwards;
    single ones are left out. tracks: clusters of each track, i64 each, rows upwards. n_clusters, n_tracks: of the whole
    event. lines: those that accept the event; None where none was run.
    """

    slice_number: int
    x: Floats
    y: Floats
    drift: Floats
    links: Integers
    deleted_links: Integers
    seeds: Integers
    tracklets: tuple[Integers, ...]
    tracks: tuple[Integers, ...]
    n_clusters: int
    n_tracks: int
    number: int | None
    run: int | None
    flags: tuple[str, ...]
    lines: tuple[str, ...] | None

    @property
    def title(self) -> str:
        """Run and event number, as far as ODIN tells them, and the slice."""
        event = "" if self.number is None else f"run {self.run}, event {self.number}, "
        return f"{event}slice {self.slice_number}"

    @property
    def summary(self) -> str:
        """Numbers of objects of the slice and of the event."""
        of_slice = (
            f"{counted(len(self.x), 'cluster')} of {self.n_clusters}",
            counted(len(self.links), "link"),
            counted(len(self.deleted_links), "deleted link"),
            counted(len(self.seeds), "seed"),
            counted(len(self.tracklets), "tracklet"),
            f"{counted(len(self.tracks), 'track')} of {self.n_tracks}",
        )
        return ", ".join(of_slice)


class EventReader:
    """Runs single events through the chain and its lines. Raises TriggerConfigError and BackendError."""

    def __init__(
        self,
        chain: TriggerChain,
        backend: Backend,
        constants: Constants,
        trigger: TriggerConfig,
        chosen: int | None = None,
    ) -> None:
        """chosen: the slice that is drawn; the one with most clusters if None."""
        self._chosen = chosen
        self._row_x = constants[geometry.name].view(np.float32)[:N_ROWS].astype(np.float64)
        retain = tuple(column.name for column in _RETAINED)
        self._engine = chain.create_engine(backend, constants, trigger, LIMITS, retain=retain, with_lists=False)
        self._runner = OfflineRunner(self._engine, workspaces=1)

    def close(self) -> None:
        """Stop the back end."""
        self._engine.close()

    def read(self, banks: Sequence[RawBank], encoding: str = AUTO) -> SlicePicture:
        """The picture of an event. Raises ProtocolError, BackendError, and ValueError above the limits."""
        (batch,) = self._runner.run([encode_mep(self._engine.chain, [banks], encoding=encoding)])
        workspace = batch.workspace
        fetch = workspace.fetch
        firsts = fetch(slice_first.name).astype(np.int64)
        chosen = int(np.diff(firsts).argmax()) if self._chosen is None else self._chosen
        counts = fetch(row_counts.name).reshape(-1, N_ROWS)[chosen].astype(np.int64)
        # Clusters of no row, and those of a row with too many, have a place at the end that stays empty.
        begin = int(firsts[chosen])
        end = begin + int(counts.sum())
        row = np.repeat(np.arange(N_ROWS), counts)
        row_first = np.cumsum(counts) - counts
        up, down, kept = (
            fetch(column.name, end)[begin:end].astype(np.int64) for column in (link_up, link_down, next_cluster)
        )
        inputs = fetch(cluster_inputs.name, end)[begin:end].astype(np.int64)
        clusters = np.zeros(end - begin, CLUSTER)
        packed = fetch(cluster_places.name, end)[begin:end]
        clusters["y"], clusters["z"] = packed & 0xFFFF, packed >> 16
        y, drift = places_of_clusters(clusters)
        n_seeds = int(fetch(start_count.name)[chosen])
        first_seed = int(workspace.first(start_hits)[chosen])
        seeds = fetch(start_hit.name, first_seed + n_seeds)[first_seed:].astype(np.int64)
        upward = _links(up, row, row_first, 2)
        links = _links(kept, row, row_first, 2)
        both = np.concatenate([upward, _links(down, row, row_first, -2)[:, ::-1]])
        # Each link once: those that both ends have, and those of one end alone.
        keys = np.unique(both[:, 0] * len(row) + both[:, 1]) if len(row) else np.empty(0, np.int64)
        deleted = np.setdiff1d(keys, links[:, 0] * len(row) + links[:, 1])
        n_tracks = int(fetch(track_count.name)[0])
        run, number = run_and_event(banks)
        return SlicePicture(
            slice_number=chosen,
            x=self._row_x[row],
            y=y,
            drift=drift,
            links=links,
            deleted_links=np.column_stack(np.divmod(deleted, max(len(row), 1))),
            seeds=row_first[seeds >> 16] + (seeds & 0xFFFF),
            tracklets=_tracklets_of(fetch(weights.name, end)[begin:end].astype(np.int64)),
            tracks=_tracks_of(
                fetch(track.name, n_tracks),
                fetch(track_cluster.name, int(fetch(track_cluster_count.name)[0])),
                chosen,
                inputs,
            ),
            n_clusters=int(firsts[-1]),
            n_tracks=n_tracks,
            number=number,
            run=run,
            flags=tuple(self._engine.flags.names(int(workspace.host_array(event_flags.name)[0]))),
            lines=accepting_lines(self._engine.lines, workspace.output.lines[0]),
        )


def _links(target: Integers, row: Integers, row_first: Integers, step: int) -> Integers:
    """Pairs of clusters, i64[links, 2], from numbers in the row `step` rows away."""
    own = np.flatnonzero(target != NO_CLUSTER)
    return np.column_stack([own, row_first[row[own] + step] + target[own]])


def _tracklets_of(weight: Integers) -> tuple[Integers, ...]:
    """Clusters, which come in the order of rows, by the tracklet in the lower 16 bits of their weight."""
    own = np.flatnonzero(weight)
    order = own[np.argsort(weight[own] & 0xFFFF, kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(weight[order] & 0xFFFF)) + 1)
    return tuple(group for group in groups if len(group) > 1)


def _tracks_of(
    records: NDArray[np.void], numbers: NDArray[np.integer], chosen: int, inputs: Integers
) -> tuple[Integers, ...]:
    """The clusters of the tracks of a slice, as places among its clusters."""
    order = np.argsort(inputs)
    counts = records["n_clusters"].astype(np.int64)
    parts = np.split(numbers.astype(np.int64), np.cumsum(counts)[:-1]) if len(counts) else []
    return tuple(
        order[np.searchsorted(inputs[order], part)]
        for part, of_slice in zip(parts, records["slice"].tolist(), strict=True)
        if of_slice == chosen
    )
