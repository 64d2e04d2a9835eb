"""VELO clusters against true hits: found, clones, fakes, residuals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.tools.validation import InputFormat, LhcbTruthCheck, ValidationOptions
from hltnode.processing.lhcb.offline.validation.checker.clusters import ClusterCounts, TrueHits
from hltnode.processing.selection.studies.row_choice import EVERYTHING


def ids(*pixels: tuple[int, int, int]) -> NDArray[np.uint32]:
    """LHCbIDs of (sensor, column 0..767, row); the chip is in the upper bits of the column."""
    return np.array([2 << 28 | sensor << 18 | column << 8 | row for sensor, column, row in pixels], dtype=np.uint32)


def judged(
    found: NDArray[np.uint32],
    true: NDArray[np.uint32],
    position: NDArray[np.float32] | None = None,
    places: TrueHits | None = None,
) -> dict[str, Any]:
    counts = ClusterCounts()
    counts.add_event(found, np.zeros((len(found), 3), np.float32) if position is None else position, true, places)
    return counts.result()


@pytest.mark.parametrize(
    ("cluster", "belongs"),
    [
        ((7, 300, 100), True),
        ((7, 301, 101), True),
        ((7, 299, 99), True),
        ((7, 302, 100), False),
        ((7, 300, 102), False),
        ((8, 300, 100), False),
    ],
)
def test_a_cluster_belongs_to_a_true_hit_within_one_pixel(cluster: tuple[int, int, int], belongs: bool) -> None:
    result = judged(ids(cluster), ids((7, 300, 100)))
    assert (result["found"], result["fakes"]) == ((1, 0) if belongs else (0, 1))
    assert result["efficiency"] == float(belongs)


@pytest.mark.parametrize(
    ("cluster", "true"),
    [((7, 300, 255), (7, 301, 0)), ((7, 301, 0), (7, 300, 255)), ((7, 767, 9), (8, 0, 9)), ((8, 0, 9), (7, 767, 9))],
)
def test_pixels_at_opposite_edges_are_no_neighbours(cluster: tuple[int, int, int], true: tuple[int, int, int]) -> None:
    assert judged(ids(cluster), ids(true))["fakes"] == 1


def test_the_nearest_true_hit_is_taken_and_further_clusters_are_clones() -> None:
    true = ids((7, 300, 100), (7, 301, 100), (7, 301, 100), (7, 500, 9))
    result = judged(ids((7, 301, 100), (7, 300, 100), (7, 300, 101), (7, 302, 100), (9, 1, 1)), true)
    assert result == {
        "clusters": 5,
        "true_hits": 3,
        "found": 2,
        "efficiency": pytest.approx(2 / 3),
        "clones": 2,
        "clone_rate": 0.5,
        "fakes": 1,
        "fake_rate": 0.2,
    }


def test_ids_of_the_old_scheme_and_orientation_bits_do_not_matter() -> None:
    old = ids((7, 300, 100)) & np.uint32(0x0FFFFFFF) | np.uint32(8 << 28)
    assert judged(ids((7, 300, 100)) | np.uint32(3 << 26), old)["found"] == 1


def test_events_without_clusters_or_truth() -> None:
    none = np.empty(0, np.uint32)
    assert judged(none, ids((7, 1, 1)))["efficiency"] == 0.0
    result = judged(ids((7, 1, 1)), none)
    assert (result["efficiency"], result["fake_rate"], result["clone_rate"]) == (None, 1.0, None)


def test_residuals_are_those_of_clusters_whose_true_hit_has_a_place() -> None:
    rng = np.random.default_rng(1)
    pixels = [(7, column, 100) for column in range(0, 700, 3)]
    places = rng.uniform(-30.0, 30.0, (len(pixels), 3))
    moved = places + rng.normal(0.0, [0.010, 0.020, 0.0], places.shape)
    all_but_one = TrueHits(ids(*pixels)[:-1][::-1], places[:-1][::-1])
    result = judged(ids(*pixels), ids(*pixels), moved.astype(np.float32), all_but_one)
    assert result["residual_x"]["entries"] == len(pixels) - 1
    assert result["residual_x"]["width"] == pytest.approx(10.0, rel=0.15)
    assert result["residual_y"]["width"] == pytest.approx(20.0, rel=0.15)
    assert result["residual_y"]["unit"] == "µm"


def clusters_of(
    check: LhcbTruthCheck, events: Any, encoding: str, geometry: VeloGeometry
) -> tuple[dict[str, Any], str]:
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels),
        geometry_constants(geometry),
        CHAIN.load_trigger(None, "velo"),
        BatchLimits(events=32, input_bytes=4 << 20),
        retain=check.retained,
    )
    for batch in OfflineRunner(engine).run(encode_meps(CHAIN, events, 3, encoding)):
        check.add(batch)
    engine.close()
    checked = check.finish(EVERYTHING)
    clusters: dict[str, Any] = checked.result()["clusters"]
    return clusters, checked.text


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_clusters_of_simulated_events(encoding: VeloEncoding) -> None:
    """Truth has the clusters of crossings; noise and delta rays are fakes."""
    geometry = VeloGeometry.builtin()
    check = LhcbTruthCheck(CHAIN.sequences["velo"].algorithms, None, ValidationOptions())
    events = list(simulate_events(8, seed=3, geometry=geometry, velo_banks=encoding))
    found, text = clusters_of(check, events, encoding, geometry)
    assert found["true_hits"] > 3000
    assert found["efficiency"] >= 0.995
    assert found["clone_rate"] < 0.005
    assert 0.0 < found["fake_rate"] < 0.1
    assert "residual_x" not in found
    assert f"{found['found']:9d}/{found['true_hits']:9d}" in text


@pytest.mark.physics
def test_clusters_of_real_events_have_the_truth_of_the_other_encoding(shared: Path) -> None:
    geometry_folder = shared / "data" / "lhcb-geometry"
    geometry = VeloGeometry.load(geometry_folder)
    [path] = (shared / "data" / "lhcb-minbias-mdf").glob("*retina3*.mdf")
    for encoding, least in (("retina", 0.99), ("superpixel", 0.97)):
        check = LhcbTruthCheck(CHAIN.sequences["velo"].algorithms, geometry_folder, ValidationOptions())
        found, _ = clusters_of(check, read_events(path), encoding, geometry)
        assert found["efficiency"] >= least, encoding
        assert found["clone_rate"] < 0.01, encoding


@pytest.mark.physics
def test_clusters_of_velopix_events_lie_within_an_eighth_of_a_pixel(shared: Path) -> None:
    geometry_folder = shared / "data" / "lhcb-geometry"
    options = ValidationOptions(input_format=InputFormat.VELOPIX)
    check = LhcbTruthCheck(CHAIN.sequences["velo"].algorithms, geometry_folder, options)
    path = shared / "data" / "velo-truth" / "bsphiphi.jsonl.gz"
    events = (event for event, _ in zip(check.events(path), range(20), strict=False))
    found, text = clusters_of(check, events, "retina", VeloGeometry.load(geometry_folder))
    assert found["efficiency"] == 1.0
    assert found["residual_x"]["entries"] == found["found"] + found["clones"]
    for axis in "xy":
        assert 0.1 < found[f"residual_{axis}"]["width"] < 7.0
        assert abs(found[f"residual_{axis}"]["median"]) < 1.0
    assert "residual in x" in text
