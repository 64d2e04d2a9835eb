"""Tracks and vertices of the whole chain, from raw banks: real and simulated events against their truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.processing.lhcb.offline.validation.readers.velopix import encode_velopix, read_velopix
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.velo.track_sample import DEVELOPMENT_MDF

pytestmark = pytest.mark.physics

# In per cent: result of a plain search by triplet on all 300 events of each set.
FLOORS = {
    "minbias": {"velo_eta25": 97.86, "long": 99.15, "long_p5": 99.41},
    "bsphiphi": {"velo_eta25": 98.18, "long": 99.33, "long_p5": 99.61, "long_from_b_p5": 99.37},
}
VELO_BSPHIPHI = {"velo_eta25": 98.25, "long": 99.35, "long_p5": 99.63, "long_strange": 98.04, "long_from_b_p5": 99.37}
"""Result of the sequence velo (docs/results.md)."""
MOST_GHOSTS = 1.28
MOST_CLONES = {"minbias": 2.55, "bsphiphi": 2.40}
HIT_EFFICIENCY = {"minbias": 96.2, "bsphiphi": 96.3}


PUBLISHED = """
[sequence.velo_follow_tracks]
max_follow_scatter = 0.125
[sequence.velo_filter_three_hit_tracks]
max_chi2 = 14.5
"""
"""Constants with the published clones and hits (docs/results.md)."""


def checked(
    events: Iterable[Sequence[RawBank]], geometry: VeloGeometry, sequence: str = "velo", constants: str = ""
) -> dict[str, Any]:
    """The result of hltnode validate on some events."""
    limits = BatchLimits(events=32, input_bytes=4 << 20)
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels),
        geometry_constants(geometry),
        TriggerConfig.from_toml(constants, CHAIN.menu, sequence),
        limits,
        retain=retained(CHAIN.sequences[sequence].algorithms),
    )
    checker = Checker()
    for batch in OfflineRunner(engine).run(encode_meps(CHAIN, events, 16)):
        assert not batch.workspace.output.flags.any()
        check_batch(checker, batch)
    engine.close()
    assert checker.faults.events == 0
    return checker.result()


def test_tracks_and_vertices_of_the_real_events_are_found(shared: Path) -> None:
    records = iter_records((shared / DEVELOPMENT_MDF).read_bytes(), verify_checksum=False)
    geometry = VeloGeometry.load(shared / "data/lhcb-geometry")
    result = checked((record.banks() for record in records), geometry)
    long = result["velo"]["categories"]["long"]
    assert long["reconstructible"] == 374
    assert long["reconstructed"] >= 371
    assert result["velo"]["ghost_rate"] < 0.0128
    assert result["pv"]["reconstructible"] == 36
    assert result["pv"]["reconstructed"] >= 32
    assert result["pv"]["false_rate"] == 0


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    geometry = VeloGeometry.builtin()
    return checked(simulate_events(400, seed=21, geometry=geometry), geometry)


def test_at_least_91_percent_of_simulated_collisions_are_found_and_at_most_1_are_false(
    simulated: dict[str, Any],
) -> None:
    pv = simulated["pv"]
    assert pv["reconstructible"] > 1500
    assert pv["efficiency"] >= 0.91
    assert pv["false_rate"] <= 0.01


@pytest.mark.parametrize("axis", "xyz")
def test_errors_of_simulated_vertices_are_right_within_10_percent(simulated: dict[str, Any], axis: str) -> None:
    pull = simulated["resolution"]["pv"][f"pull_{axis}"]
    assert pull["entries"] > 1500
    assert pull["width"] == pytest.approx(1.0, abs=0.1)


@cache
def velopix_events(folder: Path, sample: str) -> tuple[VeloGeometry, tuple[tuple[RawBank, ...], ...]]:
    """The geometry and the banks of a set of the VeloPix challenge, encoded once."""
    geometry = VeloGeometry.load(folder / "lhcb-geometry")
    events = read_velopix(folder / "velo-truth" / f"{sample}.jsonl.gz")
    return geometry, tuple(tuple(encode_velopix(event, geometry)) for event in events)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sample", FLOORS)
def test_tracks_of_the_velopix_sets_are_at_least_as_good_as_those_of_a_plain_prototype(
    shared: Path, sample: str
) -> None:
    geometry, events = velopix_events(shared / "data", sample)
    result = checked(events, geometry)
    categories = result["velo"]["categories"]
    for name, floor in FLOORS[sample].items():
        assert round(100 * categories[name]["efficiency"], 2) >= floor, name
    assert 100 * result["velo"]["ghost_rate"] <= MOST_GHOSTS
    assert 100 * categories["velo_eta25"]["clone_rate"] <= MOST_CLONES[sample]
    assert 100 * categories["velo_eta25"]["hit_efficiency"] >= HIT_EFFICIENCY[sample]
    assert result["pv"] is None


@pytest.mark.timeout(300)
def test_velo_simd_finds_what_velo_finds_in_the_velopix_events(shared: Path) -> None:
    geometry, events = velopix_events(shared / "data", "bsphiphi")
    result = checked(events, geometry, "velo_simd")["velo"]
    for name, of_velo in VELO_BSPHIPHI.items():
        assert round(100 * result["categories"][name]["efficiency"], 2) >= of_velo, name
    assert 100 * result["ghost_rate"] <= 1.10
    assert 100 * result["categories"]["velo_eta25"]["clone_rate"] <= 1.72
    # Hennequin, thesis, table 5.3: 96.97 and 96.60.
    assert round(100 * result["categories"]["velo_eta25"]["hit_efficiency"], 2) >= 96.97
    assert round(100 * result["categories"]["velo_eta25"]["hit_efficiency_last"], 2) >= 96.60


@pytest.mark.timeout(300)
def test_velo_simd_reaches_the_published_clones_and_hits_with_a_wider_scatter(shared: Path) -> None:
    """Hennequin, thesis, tables 5.1 to 5.3, VELO tracks in 2 < eta < 5."""
    geometry, events = velopix_events(shared / "data", "bsphiphi")
    result = checked(events, geometry, "velo_simd", PUBLISHED)["velo"]
    velo = {name: round(100 * value, 2) for name, value in result["categories"]["velo_eta25"].items()}
    assert velo["efficiency"] >= 98.20
    assert velo["clone_rate"] <= 1.35
    assert round(100 * result["ghost_rate"], 2) <= 1.04
    assert velo["hit_efficiency"] >= 96.97
    assert velo["hit_efficiency_first3"] >= 97.08
    assert velo["hit_efficiency_last"] >= 96.60
