"""The NumPy side of the benchmark finds the triplets of the chain."""

from __future__ import annotations

import numpy as np

from benchmarks.detectors.mu3e import combinations, layers_of, selected, triplets
from tests.processing.mu3e.pixel_events import NO_HITS, hits_of, mep_of_hits, run_chain, simulated


def test_numpy_finds_the_triplets_of_the_chain() -> None:
    made = hits_of(simulated(5, 6))
    found = run_chain(mep_of_hits([part for hits in made for part in (NO_HITS, hits)] + [NO_HITS]))
    n = 0
    for e, hits in enumerate(made):
        layers = layers_of(hits, hits["time"].astype(np.int64))
        assert len(selected(layers)[0]) == found.n_triplets[2 * e + 1]
        assert abs(len(triplets(layers)[0]) - len(found.tracks[2 * e + 1])) <= 1
        n += len(found.tracks[2 * e + 1])
    assert n > 100


def test_combinations_are_counted_by_frame() -> None:
    places = np.zeros((3, 3), np.float32)
    times = (np.array([0, 49, 50]), np.array([10, 60, 99]), np.array([49, 50, 51]))
    assert combinations([(each, places) for each in times]) == 2 * 1 * 1 + 1 * 2 * 2
