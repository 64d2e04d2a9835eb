import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.likeness import SampleSummary
from hltnode.processing.lhcb.offline.validation.likeness.quantities import QUANTITIES
from hltnode.processing.lhcb.offline.validation.likeness.residuals import TruthHits, curve_at, fit_curves
from hltnode.processing.offline.likeness.comparison import compare, comparison_result
from hltnode.processing.offline.likeness.distribution import (
    Distribution,
)
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import iter_records


def summary_of(**values: ArrayLike) -> SampleSummary:
    """A sample with values of these quantities only."""
    summary = SampleSummary(Detector.builtin())
    for name, found in values.items():
        summary.distributions[name] = Distribution(QUANTITIES[name])
        summary.distributions[name].add(found)
    return summary


def test_means_that_differ_by_more_than_fifteen_per_cent_are_named() -> None:
    reference = summary_of(
        long_per_event=100, muon_hits_per_event=100, ut_hits_per_event=100, velo_residual=1.0, ut_layer=[0, 1]
    )
    other = summary_of(long_per_event=114, muon_hits_per_event=116, ut_hits_per_event=84, velo_residual=50.0)
    result = json.loads(json.dumps(comparison_result(reference, other), allow_nan=False))
    assert result["differ"] == ["ut_hits_per_event", "muon_hits_per_event"]
    assert result["missing"] == ["ut_layer"]
    assert result["quantities"]["muon_hits_per_event"]["ratio"] == pytest.approx(1.16)
    assert result["quantities"]["velo_residual"]["ratio"] is None
    assert result["quantities"]["ut_layer"]["other_mean"] is None


def test_curves_are_found_again_and_owners_of_too_few_hits_have_none() -> None:
    rng = np.random.default_rng(2)
    owner = np.repeat(np.arange(3), [8, 6, 5])
    z = rng.uniform(-700, 700, len(owner))
    x = np.array([2.0, -1.0, 0.5])[owner] + np.array([0.1, 0.02, -0.05])[owner] * z + 1e-8 * z**3
    curve = fit_curves(owner, z, x, 3, 4)
    assert np.isnan(curve[2:]).all()
    np.testing.assert_allclose(curve_at(curve[owner], z)[owner < 2], x[owner < 2], atol=1e-6)


def test_hits_in_one_plane_do_not_determine_a_line() -> None:
    assert np.isnan(fit_curves(np.zeros(5, np.int64), np.full(5, 100.0), np.arange(5.0), 1, 1)).all()


def test_truth_hits_are_found_by_id_in_any_orientation_and_ids_without_hits_are_left_out() -> None:
    ids = np.array([0x20000005, 0x20000007, 0x20000009, 0x20000005], dtype=np.uint32)
    hits = np.array([0x20000009, 0x2C000005], dtype=np.uint32)
    found = TruthHits.find(ids, np.array([3, 1]), np.array([True, True]), hits)
    assert (found.owner.tolist(), found.hit.tolist()) == ([0, 0, 1], [1, 0, 1])
    assert TruthHits.find(ids, np.array([3, 1]), np.array([False, True]), hits).hit.tolist() == [1]
    assert len(TruthHits.find(ids, np.array([3, 1]), np.array([True, True]), hits[:0]).hit) == 0


def summary_of_real_events(shared: Path, detector: Detector) -> SampleSummary:
    summary = SampleSummary(detector)
    path = shared / "data" / "lhcb-minbias-mdf" / "minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
    for record in iter_records(path.read_bytes()):
        summary.add_event(record.banks())
    return summary


@pytest.fixture(scope="module")
def real_sample(shared: Path) -> SampleSummary:
    return summary_of_real_events(shared, Detector.load(shared / "data" / "lhcb-geometry"))


@pytest.mark.physics
def test_the_real_events_have_the_known_numbers_of_hits(real_sample: SampleSummary) -> None:
    found = {name: distribution.total for name, distribution in real_sample.distributions.items()}
    # docs/physics/validation.md, reference figures.
    assert found["ut_hits_per_event"] == 8002
    assert found["muon_hits_per_event"] == 1691
    assert found["long_per_event"] == 436
    assert found["downstream_per_event"] == 135
    assert found["pvs_per_event"] == 36
    assert found["velo_clusters_per_event"] == sum((3744, 984, 1586, 1575, 2340, 746, 884))
    assert found["scifi_hits_per_event"] == real_sample.distributions["scifi_layer"].entries
    # All truth ids of VELO, UT and SciFi are hits.
    assert (real_sample.faults.events, real_sample.faults.lost_ids) == (0, 0)
    assert real_sample.faults.ids == 12_070 + 7_662 + 22_961


@pytest.mark.physics
def test_the_residuals_of_the_real_truth_hits_are_the_known_ones(real_sample: SampleSummary) -> None:
    # Long, p > 10 GeV: 1,396 VELO hits, median 15 um, in x and y; 596 UT hits, 95 % within 3 mm.
    velo, ut = (real_sample.distributions[name] for name in ("velo_residual", "ut_residual"))
    assert velo.entries == 2 * 1396
    assert velo.width == pytest.approx(13, abs=3)
    assert ut.entries == 596
    assert ut.width == pytest.approx(1.5, abs=0.5)
    assert real_sample.distributions["scifi_residual"].width == pytest.approx(60, abs=30)


@pytest.mark.physics
def test_the_builtin_detector_gives_the_same_distributions_for_the_real_events(
    shared: Path, real_sample: SampleSummary
) -> None:
    # The built-in calorimeter has another read-out.
    compared = compare(real_sample, summary_of_real_events(shared, Detector.builtin()))
    pairs = [pair for pair in compared if pair.quantity.detector != "ECAL"]
    assert all(pair.other is None for pair in compared if pair.quantity.detector == "ECAL")
    assert all(pair.reference is not None and pair.other is not None for pair in pairs)
    assert [pair.quantity.name for pair in pairs if pair.distance is None or pair.distance > 0.05] == []
    same = {pair.quantity.name for pair in pairs if pair.distance == 0.0}
    assert {"muon_hits_per_event", "muon_region", "ut_sector", "scifi_mat", "velo_sensor"} <= same


@pytest.mark.physics
def test_a_sample_is_like_itself(real_sample: SampleSummary) -> None:
    for pair in compare(real_sample, real_sample):
        assert pair.distance == 0.0
        assert not pair.differs


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_the_velo_of_simulated_events_is_counted_in_both_encodings(encoding: VeloEncoding) -> None:
    summary = SampleSummary(Detector.builtin())
    events = list(simulate_events(3, 1, geometry=VeloGeometry.builtin(), nu=2.0, velo_banks=encoding))
    for banks in events:
        summary.add_event(banks)
    found = summary.distributions
    assert summary.faults.events == 0
    assert found["velo_clusters_per_sensor"].total == found["velo_clusters_per_event"].total
    assert found["velo_residual"].width == pytest.approx(12, abs=6)
    assert found[f"{encoding}_bytes_per_event"].total == found[f"{encoding}_bank_size"].total
    assert found[f"{encoding}_bytes_per_event"].entries == 3
    assert ("velo_cluster_size" in found) == (encoding == "superpixel")
    assert "ut_hits_per_event" not in found


def test_truth_that_does_not_match_is_left_out_of_the_distributions_of_truth() -> None:
    first, second = simulate_events(2, 1, geometry=VeloGeometry.builtin(), nu=3.0)
    truth_types = (LhcbBankType.MC_TRACKS, LhcbBankType.MC_VERTICES)
    mixed = [bank for bank in first if bank.type not in truth_types]
    mixed += [bank for bank in second if bank.type in truth_types]
    summary = SampleSummary(Detector.builtin())
    summary.add_event(mixed)
    assert summary.faults.events == 1
    assert "long_per_event" not in summary.distributions
    assert "velo_clusters_per_event" in summary.distributions
