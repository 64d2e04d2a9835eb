"""Features of trees and the line of the muon hits: the kernel against the oracle, and bad values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.muon import MuonGeometry, MuonHits
from hltnode.processing.lhcb.muon.collections import FEATURES, NO_HIT
from hltnode.protocol.lhcb.banks.muon import decode_muon
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import on_cpu, with_block_size
from tests.processing.lhcb.muon.measure_oracle import MISSING, features_of, stub_of
from tests.processing.lhcb.muon.muon_chain import BEAM_TY, MuonBatch, MuonEvent, encode_mep, muon_chain
from tests.processing.lhcb.muon.muon_oracle import sorted_hits
from tests.processing.lhcb.muon.muon_samples import BUILTIN, banks_of, random_digits, simulated_events
from tests.processing.lhcb.muon.test_hits import real_events
from tests.processing.lhcb.muon.test_is_muon import as_input, random_tracks, real_tracks

CLOSE = 1.0
"""mm^2: hits whose distances differ by less may be taken for each other in single precision."""


def hits_of(banks: Sequence[RawBank], geometry: MuonGeometry) -> MuonHits:
    return sorted_hits(geometry, decode_muon(banks))


def assert_measured(event: MuonEvent, hits: MuonHits, tracks: NDArray[np.float64]) -> tuple[int, int]:
    """Compare the features and the stubs of all tracks; returns the numbers of both."""
    n_features = n_stubs = 0
    for i, track in enumerate(tracks):
        expected, margin = features_of(hits, track)
        if margin > CLOSE:
            n_features += 1
            np.testing.assert_allclose(event.features[i], expected, rtol=2e-3, atol=5e-3)
        nearest = [int(hit) for hit in event.muon_hits[i] if hit != NO_HIT]
        stub = stub_of(hits, track, BEAM_TY * track[3], nearest)
        np.testing.assert_allclose(event.stub[i], stub, rtol=2e-3, atol=2e-5)
        n_stubs += bool(nearest)
    return n_features, n_stubs


@pytest.mark.parametrize(("kind", "expected"), [("truth", (400, 13)), ("forward", (120, 4))])
def test_features_of_the_real_events_are_those_of_the_oracle(
    shared: Path, kind: str, expected: tuple[int, int]
) -> None:
    geometry = MuonGeometry.load(shared / "data/lhcb-geometry")
    events, tracks = real_events(shared), [as_input(of_event) for of_event in real_tracks(shared, kind)]
    made = MuonBatch(encode_mep(events), geometry, tracks).run()
    counts = [
        assert_measured(event, hits_of(banks, geometry), of_event)
        for event, banks, of_event in zip(made, events, tracks, strict=True)
    ]
    n_features, n_stubs = np.sum(counts, axis=0).tolist()
    assert n_features > expected[0]
    assert n_stubs == expected[1]
    # The real events have times, and hits of both kinds.
    features = np.concatenate([event.features for event in made])
    for name, least in (("muon_dt_m2", 6), ("muon_time_m5", 6), ("muon_crossed_m3", 2)):
        assert len(np.unique(features[:, FEATURES.index(name)])) >= least, name


def test_features_of_random_tracks_are_those_of_the_oracle() -> None:
    rng = np.random.default_rng(11)
    events = [banks_of(random_digits(rng, 1500)), *simulated_events(3)]
    tracks = [random_tracks(rng, 150) for _ in events]
    made = MuonBatch(encode_mep(events), BUILTIN, tracks).run()
    counts = [
        assert_measured(event, hits_of(banks, BUILTIN), of_event)
        for event, banks, of_event in zip(made, events, tracks, strict=True)
    ]
    n_features, n_stubs = np.sum(counts, axis=0).tolist()
    assert n_features > 300
    assert n_stubs > 10


def test_stations_without_hits_have_missing_features() -> None:
    tracks = random_tracks(np.random.default_rng(12), 20)
    (event,) = MuonBatch(encode_mep([[]]), BUILTIN, [tracks]).run(fill=0xA5)
    missing = np.where([name.startswith("muon_crossed") for name in FEATURES], 0.0, MISSING)
    assert (event.features == missing.astype(np.float32)).all()
    assert not event.stub.any()
    assert not event.nn.any()


def test_tracks_with_impossible_states_have_bounded_features() -> None:
    banks = banks_of(random_digits(np.random.default_rng(13), 300))
    tracks = random_tracks(np.random.default_rng(14), 12)
    (usual,) = MuonBatch(encode_mep([banks]), BUILTIN, [tracks]).run()
    for column in range(5):
        for value in (np.nan, np.inf, -np.inf):
            bad = tracks.copy()
            bad[5, column] = value
            (event,) = MuonBatch(encode_mep([banks]), BUILTIN, [bad]).run()
            others = np.arange(12) != 5
            assert np.array_equal(event.features[others], usual.features[others])
            assert np.isfinite(event.features[5]).all(), (column, value)
            assert np.isfinite(event.stub[5]).all()
            assert 0.0 <= event.nn[5] <= 1.0
            if column < 4:
                assert event.features[5, 0] == MISSING
                assert event.features[5, FEATURES.index("muon_crossed_m2")] == 0.0


def test_the_common_kernel_and_every_block_size_measure_the_same() -> None:
    rng = np.random.default_rng(15)
    events = [banks_of(random_digits(rng, n)) for n in (0, 7, 900)] + simulated_events(3)[:2]
    batch = MuonBatch(encode_mep(events), BUILTIN, [random_tracks(rng, n) for n in (20, 3, 90, 40, 1)])
    expected = batch.run()
    kernels = muon_chain().kernels
    for launch in (on_cpu(kernels=kernels, common=True), *(with_block_size(n, kernels=kernels) for n in (1, 32, 100))):
        for event, other in zip(expected, batch.run(launch, fill=0xFF), strict=True):
            assert event.same_as(other)
