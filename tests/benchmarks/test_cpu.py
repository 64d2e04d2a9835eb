"""The comparison of CPU back ends: refused arguments, and the work of its processes."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cpu.comparison import RefusedError, Spread, Worker, compare, refuse_unlike, work_of
from benchmarks.cpu.forms import FORMS, Sample
from benchmarks.cpu.growth import COLLISIONS, exponent, exponent_of_dense
from benchmarks.cpu.kernels import kernel_times
from benchmarks.cpu.revision import WORKING_TREE, RevisionError, built
from hltnode.processing.lhcb.offline.simulation.banks.detector_encoding import BankVersions
from hltnode.processing.lhcb.offline.simulation.blocks import SimulationRequest, encode_block
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample as Generated

FIRST = {"events": 2, "digest": "a", "target": "avx2", "flags": [0, 0], "counts": {"tracks": [900, 100], "pvs": [4, 1]}}


def simulated(path: Path, events: int) -> Sample:
    request = SimulationRequest(
        sample=Generated.MINBIAS,
        nu=1.0,
        seed=1,
        run=1,
        detectors="velo",
        versions=BankVersions(),
        file_format="mdf",
    )
    path.write_bytes(encode_block(request, 0, events))
    return Sample("simulated", {"retina": path}, None, 2)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"digest": "b"}, "digest"),
        ({"events": 3}, "events"),
        ({"target": "avx512"}, "target"),
        ({"flags": [0, 2]}, "1 of 2 events have other flags"),
        ({"counts": {"tracks": [900, 90], "pvs": [4, 1]}}, "different physics"),
    ],
)
def test_unlike_things_are_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        refuse_unlike({**FIRST, **changed}, FIRST)


def test_counts_within_the_tolerance_and_counts_of_one_revision_alone_are_no_other_physics() -> None:
    refuse_unlike({**FIRST, "counts": {"tracks": [901, 100], "pvs": [4, 1], "muons": [0, 1]}}, FIRST)


def test_a_spread_has_median_and_quartiles() -> None:
    assert Spread.of([5.0, 1.0, 2.0, 3.0, 4.0]) == Spread(3.0, 2.0, 4.0)


def test_the_exponent_is_that_of_a_power_law() -> None:
    hits = [100.0, 300.0, 1000.0, 5000.0]
    assert exponent(hits, [3.0 * n**1.25 for n in hits]) == pytest.approx(1.25)


def test_the_exponent_of_dense_events_is_that_from_7_6_collisions_on() -> None:
    times = [nu if nu < 7.6 else nu**1.5 for nu in COLLISIONS]
    assert exponent_of_dense(COLLISIONS, times) == pytest.approx(1.5)
    assert exponent(COLLISIONS, times) != pytest.approx(1.5, abs=0.05)


def test_a_revision_that_git_does_not_have_is_named() -> None:
    with pytest.raises(RevisionError, match="no-such-revision"):
        built("no-such-revision")


@pytest.mark.process
@pytest.mark.alone
def test_a_revision_compared_with_itself_has_the_same_events_and_physics(tmp_path: Path) -> None:
    form = next(form for form in FORMS if form.name == "velo_retina")
    found = compare(form, simulated(tmp_path / "events.mdf", 3), WORKING_TREE, turns=2)
    assert found.events == 6
    assert found.counts["velo_clusters"][0] == found.counts["velo_clusters"][1] > 0
    assert found.ratio.median > 0.0
    assert set(found.algorithms_us) == set(found.baseline_algorithms_us) >= {"velo_search_by_triplet"}


def test_kernels_with_and_without_their_form_are_measured_for_an_instruction_set(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    times = kernel_times(FORMS[1], simulated(tmp_path / "events.mdf", 2), 2, "baseline")
    assert times.target == "baseline"
    assert set(times.common_us) == set(times.form_us) >= {"velo_sort_by_phi", "pv_beamline_peaks"}
    assert min(times.common_us["velo_sort_by_phi"], times.form_us["velo_sort_by_phi"]) > 0.0
    assert os.sched_getaffinity(0) == before
    with pytest.raises(RefusedError, match="does not support 'mmx'"):
        kernel_times(FORMS[1], simulated(tmp_path / "events.mdf", 1), 1, "mmx")


@pytest.mark.process
@pytest.mark.alone
def test_both_revisions_run_the_instruction_set_that_is_asked_for(tmp_path: Path) -> None:
    sample = simulated(tmp_path / "events.mdf", 1)
    assert compare(FORMS[1], sample, WORKING_TREE, turns=2, instructions="baseline").target == "baseline"
    with pytest.raises(RefusedError, match="does not support 'mmx'"):
        compare(FORMS[1], sample, WORKING_TREE, turns=2, instructions="mmx")


@pytest.mark.process
@pytest.mark.alone
def test_a_sequence_that_a_revision_does_not_have_is_refused(tmp_path: Path) -> None:
    form = replace(FORMS[1], sequence="no_such_sequence")
    work = work_of(form, simulated(tmp_path / "events.mdf", 1), form.sequence)
    assert work["pinned"] == [max(os.sched_getaffinity(0))]
    with pytest.raises(RefusedError, match="no_such_sequence"), Worker(WORKING_TREE, work):
        pass
