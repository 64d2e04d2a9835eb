"""Tracks against truth, for `hltnode validate`."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.geometry.tpc_geometry import load_geometry
from hltnode.processing.alice.offline.validation.report import page_of, text_of
from hltnode.processing.alice.offline.validation.track_checker import FoundTracks, TrackChecker
from hltnode.processing.alice.tpc.candidates.collections import v0, v0_count, v0s
from hltnode.processing.alice.tpc.collections import (
    first_of_event,
    track,
    track_cluster,
    track_cluster_count,
    track_clusters,
    track_count,
    tracks,
)
from hltnode.processing.alice.tpc.merging.collections import (
    merged_particle,
    merged_segment,
    merged_segment_count,
    merged_segments,
    merged_track,
    merged_track_count,
    merged_tracks,
)
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.offline_runner import CompletedBatch
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.offline.chain_tools import CheckedSample, NoOptions, Results
from hltnode.processing.offline.workspace_columns import Objects
from hltnode.processing.selection.studies.row_choice import RowChoice
from hltnode.protocol.alice.tpc_banks import banks_of_clusters, decode_clusters, slice_of_source, truth_of
from hltnode.protocol.raw_data.raw_bank import RawBank


def found_tracks(records: NDArray[np.void], clusters: NDArray[np.integer]) -> FoundTracks:
    """Tracks of an event from the records and cluster numbers of the chain's lists."""
    parameters = ("y", "z", "sin_phi", "tan_lambda", "q_pt")
    variances = ("c_yy", "c_zz", "c_ss", "c_ll", "c_qq")
    return FoundTracks(
        slice_number=records["slice"].astype(np.int64),
        n_clusters=records["n_clusters"].astype(np.int64),
        clusters=clusters.astype(np.int64),
        x=records["x"].astype(np.float64),
        parameters=np.column_stack([records[name].astype(np.float64) for name in parameters]),
        sigmas=np.sqrt(np.column_stack([records[name].astype(np.float64) for name in variances])),
    )


def found_merged(
    records: NDArray[np.void], segments: NDArray[np.integer], tracks_of_slices: FoundTracks
) -> FoundTracks:
    """Merged tracks of an event from the records of the chain's lists. Each cluster of a merged track counts once.

    Raises ValueError if the numbers of segments or of clusters in the records are others.
    """
    sizes, segments = records["n_segments"].astype(np.int64), segments.astype(np.int64)
    if len(segments) != sizes.sum() or (len(segments) and segments.max() >= len(tracks_of_slices.x)):
        raise ValueError(f"{len(segments)} segments of merged tracks, {int(sizes.sum())} expected")
    first = np.cumsum(tracks_of_slices.n_clusters) - tracks_of_slices.n_clusters
    n = tracks_of_slices.n_clusters[segments]
    place = np.repeat(first[segments] - np.cumsum(n) + n, n) + np.arange(n.sum())
    owner = np.repeat(np.repeat(np.arange(len(sizes)), sizes), n)
    own = np.unique(np.column_stack([owner, tracks_of_slices.clusters[place]]), axis=0)
    n_clusters = np.bincount(own[:, 0], minlength=len(sizes))
    if not np.array_equal(n_clusters, records["n_clusters"]):
        raise ValueError("merged tracks have other numbers of clusters than their segments")
    return found_tracks(records, own[:, 1])


def cluster_planes(banks: Sequence[RawBank]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Slice and row of each cluster of an event, in the order of the chain. Raises BankError for a broken bank."""
    of_clusters = banks_of_clusters(banks)
    rows = [decode_clusters(bank.payload)["row"].astype(np.int64) for bank in of_clusters]
    slices = [np.full(len(each), slice_of_source(bank.source_id)) for bank, each in zip(of_clusters, rows, strict=True)]
    nothing = np.empty(0, np.int64)
    return np.concatenate([nothing, *slices]), np.concatenate([nothing, *rows])


class TpcTruthCheck:
    """Compares the tracks of one sample with its truth."""

    retained = (
        *(track_count.name, track.name, track_cluster_count.name, track_cluster.name, first_of_event.name),
        *(merged_track_count.name, merged_track.name, merged_segment_count.name, merged_segment.name),
        merged_particle.name,
        *(v0_count.name, v0.name),
    )
    encoding = AUTO

    def __init__(self, geometry: Path | None) -> None:
        self._checker = TrackChecker(load_geometry(geometry))

    @property
    def events_seen(self) -> int:
        """Number of events so far."""
        return self._checker.events

    def events(self, path: Path) -> Iterable[Sequence[RawBank]]:
        """Raw banks of the events of a file."""
        return read_events(path)

    def add(self, batch: CompletedBatch) -> None:
        """Compare a batch. Raises BankError for banks or truth that cannot be read."""
        events = [list(banks) for mep in batch.meps for banks in mep.events]
        of_tracks = Objects(batch.workspace, tracks, track_count)
        of_clusters = Objects(batch.workspace, track_clusters, track_cluster_count)
        of_merged = Objects(batch.workspace, merged_tracks, merged_track_count)
        of_segments = Objects(batch.workspace, merged_segments, merged_segment_count)
        records, numbers = of_tracks(track), of_clusters(track_cluster)
        merged_records, segments = of_merged(merged_track), of_segments(merged_segment)
        particles = of_merged(merged_particle)
        of_v0s = Objects(batch.workspace, v0s, v0_count)
        candidates = of_v0s(v0)
        for i, banks in enumerate(events):
            found = found_tracks(records[of_tracks.event == i], numbers[of_clusters.event == i])
            of_event = of_merged.event == i
            merged = found_merged(merged_records[of_event], segments[of_segments.event == i], found)
            merged = replace(merged, particle=particles[of_event].astype(np.int64))
            self._checker.add(truth_of(banks), *cluster_planes(banks), found, merged, candidates[of_v0s.event == i])

    def finish(self, rows: RowChoice) -> CheckedSample:  # noqa: ARG002
        """The numbers of all batches."""
        checker = self._checker
        result = checker.result()
        error = "no event has truth" if checker.events == checker.without_truth else ""
        return CheckedSample(text=text_of(result), result=lambda: result, error=error)


class TpcValidation:
    """Efficiency, clones, fakes, resolution and pulls of merged tracks and of the tracks of slices."""

    options = NoOptions

    def reads(self, options: NoOptions) -> tuple[Path | None, ...]:  # noqa: ARG002
        """None."""
        return ()

    def check(
        self,
        sequence: AlgorithmSequence,  # noqa: ARG002
        geometry: Path | None,
        options: NoOptions,  # noqa: ARG002
    ) -> TpcTruthCheck:
        """A check of the tracks of any sequence. Raises ValueError, which names the file of the geometry."""
        return TpcTruthCheck(geometry)

    def read_result(self, path: Path) -> dict[str, Any]:
        """An earlier JSON object. Raises ValueError, which names the file."""
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error
        if not isinstance(result, dict) or not {"slice", "pulls", "of_occupancy"} <= result.keys():
            raise ValueError(f"{path}: it is no result of hltnode validate --chain alice_tpc")
        return result

    def page(self, results: Results, text: str) -> str:
        """One or several results as one HTML file; `text` are the tables."""
        return page_of(results, text)
