"""A beam that is not where the geometry has it: primary vertices with and without its position and slope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.histograms import contents
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import Z_AXIS, BeamLine, VeloGeometry
from hltnode.processing.lhcb.offline.display.event_reader import EventReader
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.protocol.raw_data.raw_bank import RawBank

pytestmark = pytest.mark.physics

NOMINAL = Z_AXIS
MOVED = BeamLine(0.8, -0.6)
"""1 mm off."""
TILTED = BeamLine(slope_x=1e-3, slope_y=-2e-3)
"""At z = 63 mm, the length of the luminous region, it is 0.14 mm off."""


@cache
def events(beam: BeamLine) -> Sequence[Sequence[RawBank]]:
    return list(simulate_events(200, seed=21, geometry=replace(VeloGeometry.builtin(), beamline=beam)))


def vertices_found(tmp_path: Path, beam: BeamLine, conditions: str = "") -> dict[str, Any]:
    """Primary vertices against the truth, from the built-in geometry, whose beam line is at x = y = 0."""
    path = tmp_path / "trigger.toml"
    path.write_text(conditions)
    trigger = CHAIN.load_trigger(path, "velo")
    chain = CHAIN.with_sequence("velo")
    backend = create_backend("cpu", chain.kernels)
    limits = BatchLimits(events=32, input_bytes=4 << 20)
    kept = retained(chain.sequence)
    engine = chain.create_engine(backend, chain.load_geometry(None), trigger, limits, retain=kept)
    checker = Checker()
    for batch in OfflineRunner(engine).run(encode_meps(chain, events(beam), 16)):
        check_batch(checker, batch)
    engine.close()
    found: dict[str, Any] = checker.result()["pv"]
    assert found["reconstructible"] > 1000
    return found


@pytest.mark.slow
def test_vertices_of_a_beam_1_mm_off_are_found_once_its_position_is_given(tmp_path: Path) -> None:
    best = vertices_found(tmp_path, NOMINAL)
    given = vertices_found(tmp_path, MOVED, "[conditions]\nbeam_x = 0.8\nbeam_y = -0.6\n")
    assert given["efficiency"] >= 0.98 * best["efficiency"]
    assert given["false_rate"] <= 0.01
    assert vertices_found(tmp_path, MOVED)["efficiency"] < 0.05


@pytest.mark.parametrize("beam", [NOMINAL, MOVED])
def test_steep_tracks_measure_the_beam_also_where_no_vertex_is_found(beam: BeamLine) -> None:
    trigger = CHAIN.load_trigger(None, "velo")
    chain = CHAIN.with_sequence("velo")
    limits = BatchLimits(events=32, input_bytes=4 << 20)
    engine = chain.create_engine(create_backend("cpu", chain.kernels), chain.load_geometry(None), trigger, limits)
    runner = OfflineRunner(engine)
    for _ in runner.run(encode_meps(chain, events(beam), 16)):
        pass
    found = {content.shape.name: content for content in contents(engine.histograms, runner.take_histogram_counts())}
    assert [found[name].median for name in ("beam_x", "beam_y")] == pytest.approx([beam.x, beam.y], abs=0.03)
    with_pv = found["has_pv"].bins[1] / found["has_pv"].entries
    assert with_pv > 0.98 if beam == NOMINAL else with_pv < 0.4
    # 5,000 values come from some thousand events.
    assert found["beam_x"].entries > 2 * len(events(beam))
    names = {each.name: (each.configured, each.tolerance) for each in engine.measured}
    of_halves = [f"beam_{axis}_of_velo_{side}" for axis in "xy" for side in "ac"]
    assert names == dict.fromkeys(["beam_x", "beam_y", *of_halves], (0.0, 0.05))
    engine.close()


@pytest.mark.slow
def test_vertices_of_a_tilted_beam_are_found_once_its_slope_is_given(tmp_path: Path) -> None:
    best = vertices_found(tmp_path, NOMINAL)
    given = vertices_found(tmp_path, TILTED, "[conditions]\nbeam_slope_x = 1e-3\nbeam_slope_y = -2e-3\n")
    assert given["efficiency"] >= 0.98 * best["efficiency"]
    assert given["false_rate"] <= 0.01
    assert vertices_found(tmp_path, TILTED)["efficiency"] < 0.95 * best["efficiency"]


def test_the_drawing_of_an_event_uses_the_beam_position_of_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "trigger.toml"
    places = []
    for conditions in ("", "[conditions]\nbeam_x = 0.8\nbeam_y = -0.6\n"):
        path.write_text(conditions)
        trigger = CHAIN.load_trigger(path, "velo")
        geometry = CHAIN.with_sequence("velo").load_geometry(None)
        backend = create_backend("cpu", CHAIN.kernels, threads=1)
        reader = EventReader(CHAIN, backend, geometry, trigger, run_lines=False)
        places.append([vertex.place for banks in events(MOVED)[:5] for vertex in reader.read(banks).vertices])
        reader.close()
    without, given = places
    assert len(given) > 10 > len(without)
    assert np.mean(given, axis=0)[:2] == pytest.approx((MOVED.x, MOVED.y), abs=0.05)
