"""What each condition of LHCb changes in the constants, and what it is worth on simulated events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.histograms import contents
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.calorimeter.collections import ecal_geometry
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.detector_constants import DETECTOR_CONSTANTS
from hltnode.processing.lhcb.geometry.ideal_ecal import NO_CELL
from hltnode.processing.lhcb.geometry.ideal_ut import N_SECTORS
from hltnode.processing.lhcb.geometry.magnet import DOWN, POLARITY_FILE, UP, Magnet
from hltnode.processing.lhcb.geometry.ut_groups import NO_SECTOR
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_field import VeloField
from hltnode.processing.lhcb.geometry.velo_halves import with_positions
from hltnode.processing.lhcb.muon.collections import muon_geometry
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.processing.lhcb.ut.collections import ut_geometry
from hltnode.processing.lhcb.velo.collections import VELO_GEOMETRY, velo_geometry
from hltnode.processing.selection.configuration.conditions import Values, check_conditions, with_conditions
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.protocol.raw_data.raw_bank import RawBank

LIMITS = BatchLimits(events=64, input_bytes=16 << 20)
SEQUENCE = "forward"
MOVED = {"velo_opening": 0.4, "velo_a_y": 0.25, "velo_c_x": 0.1, "velo_c_z": -0.3}


def changed(constants: Mapping[str, NDArray[np.uint8]], **values: Any) -> Mapping[str, NDArray[np.uint8]]:
    return with_conditions(constants, tuple(sorted(values.items())), CHAIN.conditions)


def test_positions_of_the_velo_move_each_module_of_a_half_and_nothing_else() -> None:
    given = {velo_geometry.name: np.frombuffer(VeloGeometry.builtin().to_bytes(), np.uint8)}
    before = given[velo_geometry.name].view(VELO_GEOMETRY.dtype)[0]
    after = changed(given, **MOVED)[velo_geometry.name].view(VELO_GEOMETRY.dtype)[0]
    shift = (after["local_to_global"] - before["local_to_global"]).reshape(26, 2, 4, 12)
    # Modules 0, 2, ... are side C, x < 0.
    assert before["local_to_global"].reshape(26, 2, 4, 12)[:, 0, :, 9].mean() < 0
    assert np.allclose(shift[:, 0, :, 9:], (-0.2 + 0.1, 0.0, -0.3), atol=1e-4)
    assert np.allclose(shift[:, 1, :, 9:], (0.2, 0.25, 0.0), atol=1e-4)
    assert not shift[..., :9].any()
    assert np.allclose((after["module_z"] - before["module_z"]).reshape(26, 2), (-0.3, 0.0), atol=1e-4)
    for name in ("local_x", "x_pitch", "beamline_x", "beamline_y"):
        assert np.array_equal(after[name], before[name])


def test_a_polarity_gives_the_constants_of_a_geometry_with_this_polarity(tmp_path: Path) -> None:
    """The names of the columns are those that read the polarity file."""
    given = {name: read(None) for name, read in DETECTOR_CONSTANTS.items()}
    up = changed(given, magnet_polarity=UP)
    expected_field = np.frombuffer(VeloField.of(Magnet.builtin(UP)).to_bytes(), np.uint8)
    assert np.array_equal(up["velo_field"], expected_field)
    differ = {name for name in given if not np.array_equal(given[name], up[name])}
    assert differ == {"ut_tables", "long_track_parameters", "seeding_tables", "velo_field"}
    for name in differ - {"velo_field"}:
        (at,) = np.nonzero(given[name].view("<f4") != up[name].view("<f4"))
        assert [(given[name].view("<f4")[i], up[name].view("<f4")[i]) for i in at] == [(DOWN, UP)]
    again = changed(up, magnet_polarity=DOWN)
    same = changed(given, magnet_polarity=DOWN)
    assert all(np.array_equal(again[name], given[name]) and np.array_equal(same[name], given[name]) for name in given)
    assert POLARITY_FILE == "polarity.bin"


def test_a_condition_that_no_column_of_a_sequence_has_is_refused_in_a_trigger_file() -> None:
    columns = CHAIN.with_sequence("velo").sequence.columns
    check_conditions((("velo_opening", 1.0),), CHAIN.conditions, columns)
    with pytest.raises(TriggerConfigError, match="magnet_polarity: the sequence does not read ut_tables"):
        check_conditions((("magnet_polarity", 1.0),), CHAIN.conditions, columns)


@cache
def velo_events() -> Sequence[Sequence[RawBank]]:
    """Events of a VELO whose halves are apart."""
    return list(simulate_events(70, seed=4, geometry=with_positions(VeloGeometry.builtin(), MOVED)))


def velo_results(values: Values) -> tuple[dict[str, Any], dict[str, float]]:
    """Efficiency of primary vertices and tracks, and the medians of the histograms of the beam."""
    chain = CHAIN.with_sequence("velo")
    trigger = replace(CHAIN.load_trigger(None, "velo"), conditions=values)
    backend = create_backend("cpu", chain.kernels, threads=2)
    engine = chain.create_engine(backend, chain.load_geometry(None), trigger, LIMITS, retain=retained(chain.sequence))
    runner = OfflineRunner(engine)
    checker = Checker()
    for batch in runner.run(encode_meps(engine.chain, velo_events(), 16)):
        check_batch(checker, batch)
    counts = runner.take_histogram_counts()
    engine.close()
    medians = {held.shape.name: held.median for held in contents(engine.histograms, counts)}
    return checker.result(), {name: value for name, value in medians.items() if name.startswith("beam_")}


@pytest.mark.physics
def test_the_right_positions_of_the_velo_restore_what_the_wrong_ones_lose() -> None:
    right, seen_right = velo_results(tuple(sorted(MOVED.items())))
    wrong, seen_wrong = velo_results(())
    assert right["pv"]["efficiency"] > 0.9
    assert wrong["pv"]["efficiency"] < 0.9 * right["pv"]["efficiency"]
    # Each half shows the beam where it is, or as far off as it is itself.
    assert seen_right == pytest.approx(dict.fromkeys(seen_right, 0.0), abs=0.04)
    assert len(seen_right) == 6
    assert [seen_wrong[f"beam_y_of_velo_{side}"] for side in "ac"] == pytest.approx([-0.25, 0.0], abs=0.04)
    assert [seen_wrong[f"beam_x_of_velo_{side}"] for side in "ac"] == pytest.approx([-0.2, 0.1], abs=0.06)


@cache
def full_events() -> Sequence[Sequence[RawBank]]:
    """Events of a detector with the magnet up."""
    detector = Detector.builtin().with_conditions({"magnet_polarity": UP})
    return list(FullSimulation(detector, sample_source("minbias", 5.0, detector.velo.beamline)).events(6, 3))


def run_full(columns: Sequence[str], **values: Any) -> list[dict[str, NDArray[Any]]]:
    """Columns of the whole sequence, by batch."""
    trigger = replace(CHAIN.load_trigger(None, SEQUENCE), conditions=tuple(sorted(values.items())))
    geometry = CHAIN.with_sequence(SEQUENCE).load_geometry(None)
    backend = create_backend("cpu", CHAIN.kernels, threads=2)
    engine = CHAIN.create_engine(backend, geometry, trigger, LIMITS, retain=columns, with_lists=False)
    batches = OfflineRunner(engine).run(encode_meps(engine.chain, full_events(), 12))
    found = [{name: batch.workspace.fetch(name).copy() for name in columns} for batch in batches]
    engine.close()
    return found


def of_events(columns: Mapping[str, NDArray[Any]], name: str, collection: str) -> list[NDArray[Any]]:
    """A column of a collection, event by event."""
    counts, offsets = columns[f"{collection}.count"], columns[f"{collection}.offset"]
    return [columns[name][begin : begin + n] for begin, n in zip(offsets, counts, strict=False)]


@pytest.mark.physics
@pytest.mark.slow
def test_the_wrong_polarity_gives_every_track_the_opposite_charge() -> None:
    columns = ("long_tracks.qop", "long_tracks.count")
    (up,), (down,) = run_full(columns, magnet_polarity=UP), run_full(columns)

    def charges(found: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        by_event = zip(found[columns[0]].reshape(LIMITS.events, -1), found[columns[1]], strict=True)
        return np.concatenate([qop[:n] for qop, n in by_event])

    right, wrong = charges(up), charges(down)
    assert len(right) == len(wrong) > 100
    assert np.array_equal(right, -wrong)


@pytest.mark.physics
def test_masked_channels_give_no_hits_and_all_others_stay() -> None:
    columns = (
        "ut_hits.id",
        "ut_hits.count",
        "ut_hits.offset",
        "ut_hits.sector_offset",
        "muon_hits.tile",
        "muon_hits.count",
        "muon_hits.offset",
    )
    (before,) = run_full(columns)
    geometry = CHAIN.with_sequence(SEQUENCE).load_geometry(None)
    sector_of_lane = geometry[ut_geometry.name].view(ut_geometry.dtype)["sector_of_lane"][0]
    lanes = np.flatnonzero(sector_of_lane != NO_SECTOR)[::3]
    tiles = np.concatenate(of_events(before, "muon_hits.tile", "muon_hits"))
    cells = geometry[muon_geometry.name].view(muon_geometry.dtype)["cell"]["tile"][0]
    tiles = np.unique(tiles[np.isin(tiles, cells)])[::2]
    masks = {"masked_ut_lanes": tuple(lanes.tolist()), "masked_muon_tiles": tuple(tiles.tolist())}
    (after,) = run_full(columns, **masks)
    sector_offsets = before["ut_hits.sector_offset"].reshape(LIMITS.events, -1)
    sectors = np.zeros(N_SECTORS, np.bool_)
    sectors[sector_of_lane[lanes]] = True
    pairs = zip(of_events(before, "ut_hits.id", "ut_hits"), of_events(after, "ut_hits.id", "ut_hits"), strict=True)
    n_masked = 0
    for event, (given, left) in enumerate(pairs):
        ends = sector_offsets[event, : N_SECTORS + 1].astype(np.int64)
        masked = np.repeat(sectors, ends[1:] - ends[:-1])
        assert np.array_equal(left, given[~masked])
        n_masked += int(np.count_nonzero(masked))
    assert n_masked > 100
    of_muons = [of_events(found, "muon_hits.tile", "muon_hits") for found in (before, after)]
    assert len(tiles) > 20
    for given, left in zip(*of_muons, strict=True):
        direct = np.isin(given, cells) & np.isin(given, tiles)
        assert not np.isin(left, tiles).any()
        assert set(left) <= set(given)
        assert len(left) <= len(given) - np.count_nonzero(direct)


def test_masked_calorimeter_cells_have_no_channel_and_all_others_keep_theirs() -> None:
    given = {ecal_geometry.name: DETECTOR_CONSTANTS[ecal_geometry.name](None)}
    cells = tuple(range(0, 6016, 5))
    before, after = (
        found[ecal_geometry.name].view(ecal_geometry.dtype)[0]
        for found in (given, changed(given, masked_ecal_cells=cells))
    )
    masked = np.isin(before["cell_of_channel"], cells)
    assert np.count_nonzero(masked) == len(cells)
    assert np.array_equal(after["cell_of_channel"], np.where(masked, NO_CELL, before["cell_of_channel"]))
    same = [name for name in ecal_geometry.dtype.names or () if name != "cell_of_channel"]
    assert all(before[name].tobytes() == after[name].tobytes() for name in same)
