"""The search of neighbours in linear time, which the thesis rejected, as a counter-check of the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.offline.simulation.sample import SampleName, TpcOptions, TpcSample, event_of
from hltnode.processing.alice.offline.validation.matching import (
    MATCH_LEVEL,
    MIN_PT,
    MIN_ROWS,
    match_tracks,
    rows_of_particles,
    score,
)
from hltnode.processing.alice.tpc.collections import CLUSTERS_PER_TRACK, SPARE_PAIRS, TRACK
from hltnode.processing.alice.tpc.seeds.clean_links import clean_links
from hltnode.processing.alice.tpc.seeds.find_start_hits import find_start_hits
from hltnode.processing.alice.tpc.tracks.construct_tracklets import construct_tracklets
from hltnode.processing.alice.tpc.tracks.select_tracks import select_tracks
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.alice.tpc_banks import N_ROWS, N_SLICES, tpc_source
from tests.processing.alice.linear_links import linear_links
from tests.processing.alice.toy_events import GEOMETRY, columns_of, mep_of
from tests.processing.alice.track_oracle import NONE, Slice
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms


def test_in_a_plane_the_linear_search_finds_the_smallest_change_of_slope_of_all_pairs() -> None:
    """Lemma 6 of the thesis. All clusters have y = 0. Pairs may differ where several have equal changes."""
    rng = np.random.default_rng(3)
    places = [
        (np.sort(rng.choice(4000, 25, replace=False) + 20_000) << 16 | 32768).astype(np.uint32) for _ in range(N_ROWS)
    ]
    oracle = Slice(places, GEOMETRY)
    expected, found = (changes_of(oracle, *links) for links in (oracle.links(), linear_links(places, GEOMETRY)))
    assert len(expected) > 3000
    assert found.keys() == expected.keys()
    np.testing.assert_allclose(list(found.values()), [expected[key] for key in found], atol=3e-5)


def changes_of(
    oracle: Slice, up: Sequence[Sequence[int]], down: Sequence[Sequence[int]]
) -> dict[tuple[int, int], float]:
    """The change of the slope in z of each cluster with neighbours, by its row and number."""
    changes = {}
    for row in range(2, N_ROWS - 2):
        x_down, x, x_up = (float(GEOMETRY.row_x[row + step]) for step in (-2, 0, 2))
        for i, (above, below) in enumerate(zip(up[row], down[row], strict=True)):
            if above == NONE:
                continue
            z_down, z, z_up = float(oracle.z[row - 2][below]), float(oracle.z[row][i]), float(oracle.z[row + 2][above])
            changes[row, i] = abs((z_up - z) / (x_up - x) - (z_down - z) / (x_down - x))
    return changes


Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Found:
    """What one search finds in a slice."""

    links: int
    tracks: int
    efficiency: float
    fakes: float


@dataclass(frozen=True, slots=True)
class SliceEvent:
    """A slice of a simulated event: the columns of the chain, the particle of each cluster, and those findable."""

    columns: dict[str, NDArray[Any]]
    number: int
    n: int
    of_clusters: NDArray[np.int64]
    findable: NDArray[np.int64]

    @classmethod
    def of(cls, sample: SampleName, number: int, seed: int) -> SliceEvent:
        """The clusters of one slice of the first event of a sample."""
        made = TpcSample(SampleRequest(seed=seed), TpcOptions(sample=sample))
        event = event_of(made, 0)
        own = event.slice_number == number
        clusters, particle = event.clusters[own], event.particle_of[own]
        banks = np.array_split(clusters, 1 + len(clusters) // 8000)
        columns = columns_of(
            mep_of([{tpc_source(number, i // 8, i % 8): each.tobytes() for i, each in enumerate(banks)}])
        )
        plane = np.full(len(clusters), number * N_ROWS) + clusters["row"]
        rows = rows_of_particles(particle, plane, len(event.particles))[:, number]
        momentum = event.particles["momentum"]
        findable = np.flatnonzero((rows >= MIN_ROWS) & (np.hypot(momentum[:, 0], momentum[:, 1]) > MIN_PT))
        return cls(columns, number, len(clusters), particle, findable)

    @property
    def row_counts(self) -> NDArray[np.int64]:
        """Clusters of each row."""
        counts: NDArray[np.integer] = self.columns["tpc_slices.row_counts"].reshape(N_SLICES, N_ROWS)[self.number]
        return counts.astype(np.int64)

    def places(self) -> list[NDArray[np.uint32]]:
        """Clusters of each row, in the order of the kernels."""
        return np.split(self.columns["tpc_clusters.places"][: self.n], np.cumsum(self.row_counts)[:-1])

    def tracks(self, up: NDArray[np.uint16], down: NDArray[np.uint16]) -> Found:
        """Steps II to V with these links."""
        names = ("places", "inputs", "charges")
        given = {
            **{name: self.columns[name] for name in ("tpc.geometry", "tpc_bins.begin")},
            **{f"tpc_clusters.{name}": self.columns[f"tpc_clusters.{name}"] for name in names},
            **{f"tpc_slices.{name}": self.columns[f"tpc_slices.{name}"] for name in ("row_counts", "boxes")},
            "tpc_slices.first_cluster": self.columns["tpc_slices.first_cluster"],
            "tpc_clusters.up": up,
            "tpc_clusters.down": down,
        }
        limits = BatchLimits(events=1, input_bytes=8 * (self.n + 64))
        steps = [clean_links, find_start_hits, construct_tracklets, select_tracks]
        found = run_algorithms(steps, given, 1, limits, on_cpu(kernels=CHAIN.kernels))
        first = int(self.columns["tpc_slices.first_cluster"][self.number])
        assert first == 0
        n_tracks = int(found["tpc_slices.tracks"][self.number])
        n_hits = int(found["tpc_slices.track_clusters"][self.number])
        first_track, first_hit = first // CLUSTERS_PER_TRACK + self.number, 3 * self.number * SPARE_PAIRS
        records = found["tpc_slice_tracks.track"].view(TRACK.dtype)[first_track : first_track + n_tracks]
        hits = found["tpc_slice_hits.cluster"][first_hit : first_hit + n_hits].astype(np.int64)
        matches = match_tracks(records["n_clusters"].astype(np.int64), hits, self.of_clusters)
        result = score(matches, matches.particle, self.findable, MATCH_LEVEL)
        links = int((found["tpc_clusters.next"][: self.n] != NONE).sum())
        return Found(links, n_tracks, float(result.found.mean()), float(result.fakes.mean()))


@pytest.mark.parametrize(
    ("sample", "same_pairs", "links", "efficiency"),
    [
        (SampleName.PP, (0.999, 1.0), (0.998, 1.0), (1.0, 1.0)),
        (SampleName.PERIPHERAL, (0.93, 0.96), (0.91, 0.95), (0.99, 1.0)),
        pytest.param(
            SampleName.CENTRAL,
            (0.55, 0.7),
            (0.5, 0.6),
            (0.8, 0.92),
            marks=[pytest.mark.slow, pytest.mark.timeout(900)],
        ),
    ],
)
def test_the_linear_search_agrees_in_sparse_slices_and_loses_links_and_tracks_in_full_ones(
    sample: SampleName, same_pairs: Range, links: Range, efficiency: Range
) -> None:
    """Pairs of all pairs of the chosen search, mutual links and efficiency of the linear search over those of the
    chosen one: a mistake in the chosen search, the windows or the order of numbers changes the first two."""
    event = SliceEvent.of(sample, 3, seed=1)
    up, down = (np.concatenate(each) for each in linear_links(event.places(), GEOMETRY))
    chosen_up, chosen_down = (event.columns[f"tpc_clusters.{name}"][: event.n] for name in ("up", "down"))
    chosen, linear = event.tracks(chosen_up, chosen_down), event.tracks(up, down)
    has_pair = chosen_up != NONE
    same = float((has_pair & (chosen_up == up) & (chosen_down == down)).sum() / has_pair.sum())
    print(sample.value, event.n, "clusters,", len(event.findable), "findable, same pairs", same, chosen, linear)
    # A pair of the linear search is one that the chosen search compared.
    assert not (up != NONE)[~has_pair].any()
    assert chosen.efficiency > 0.96
    for value, (least, most) in (
        (same, same_pairs),
        (linear.links / chosen.links, links),
        (linear.efficiency / chosen.efficiency, efficiency),
    ):
        assert least <= value <= most
