"""The NumPy side of the benchmark finds the candidates of the chain."""

from __future__ import annotations

import numpy as np

from benchmarks.detectors.km3net import _words, candidate_times
from tests.processing.km3net.telescope_events import TOWER, mep_of_hits, run_chain, simulated


def test_numpy_finds_the_candidates_of_the_chain() -> None:
    sub_slices = simulated(5, 40, muon_rate=10_000.0)
    places = np.column_stack([TOWER.pmts[name].astype(np.int64) for name in ("floor", "group")])
    words = np.concatenate([_words(hits, 25_000 * i) for i, hits in enumerate(sub_slices)])
    found = run_chain(mep_of_hits(sub_slices))
    expected = np.concatenate([25_000 * e + each["time"].astype(np.int64) for e, each in enumerate(found.candidates)])
    times = candidate_times(words, places)
    inside = (times >= 25_000) & (times < 39 * 25_000)
    np.testing.assert_array_equal(times[inside], expected)
    assert inside.sum() > 20
    assert len(candidate_times(words[:6], places)) == 0
