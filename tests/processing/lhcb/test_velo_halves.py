"""The sequence velo_halves on simulated events: closed and open detectors, and halves at other places than assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.histograms import contents
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_halves import with_positions
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained

pytestmark = pytest.mark.physics

SEQUENCE = "velo_halves"
N_EVENTS = 150


@cache
def results(true: tuple[tuple[str, float], ...], assumed: tuple[tuple[str, float], ...]) -> Mapping[str, Any]:
    """What the checker finds, with `medians`, those of the histograms of distances."""
    geometry = with_positions(VeloGeometry.builtin(), dict(true))
    events = simulate_events(N_EVENTS, seed=8, geometry=geometry)
    chain = CHAIN.with_sequence(SEQUENCE)
    trigger = replace(CHAIN.load_trigger(None, SEQUENCE), conditions=assumed)
    engine = chain.create_engine(
        create_backend("cpu", chain.kernels, threads=2),
        chain.load_geometry(None),
        trigger,
        BatchLimits(events=32, input_bytes=4 << 20),
        retain=retained(chain.sequence),
    )
    runner = OfflineRunner(engine)
    checker = Checker()
    for batch in runner.run(encode_meps(chain, events, 16)):
        check_batch(checker, batch)
    held = {it.shape.name: it for it in contents(engine.histograms, runner.take_histogram_counts())}
    medians = {name: held[f"velo_halves_{name}"].median for name in ("dx", "dy", "dz")}
    pairs = held["velo_halves_pairs"].entries
    engine.close()
    assert pairs == N_EVENTS
    return checker.result() | {"medians": medians}


def opened(opening: float) -> Mapping[str, Any]:
    where = (("velo_opening", opening),)
    return results(where, where)


def test_each_half_of_a_closed_velo_finds_the_collisions_that_it_sees() -> None:
    halves = opened(0.0)["halves"]
    for side in ("a", "c"):
        assert halves[side]["reconstructible"] > 500
        assert halves[side]["efficiency"] > 0.8
        assert halves[side]["false_rate"] < 0.05
    assert halves["both"]["efficiency"] > 0.7
    distance = halves["both"]["distance"]
    for axis in "xyz":
        assert abs(distance[f"d{axis}"]["median"]) < 4 * distance[f"d{axis}"]["median_error"]
        assert 0.8 < distance[f"pull_{axis}"]["width"] < 1.4


def test_tracks_stay_on_one_half() -> None:
    """With both halves together, a track through both counts once; apart, a second track is a clone."""
    assert opened(0.0)["velo"]["categories"]["velo"]["clone_rate"] > 0.03
    assert opened(20.0)["velo"]["categories"]["velo"]["clone_rate"] < 0.03


def test_an_open_velo_finds_collisions() -> None:
    halves = opened(20.0)["halves"]
    for side in ("a", "c"):
        assert halves[side]["reconstructible"] > 200
        assert halves[side]["efficiency"] > 0.5
        assert halves[side]["false_rate"] < 0.1


def test_distances_of_vertices_measure_where_the_halves_are() -> None:
    """The assumed opening is right, the places of the halves are not."""
    true = (("velo_a_x", 0.1), ("velo_a_z", 0.2), ("velo_c_y", -0.08), ("velo_opening", 2.0))
    found = results(true, (("velo_opening", 2.0),))
    # A half that is further to x > 0 than assumed shows the beam at lower x.
    expected = {"dx": -0.1, "dy": -0.08, "dz": -0.2}
    for name, value in expected.items():
        assert found["medians"][name] == pytest.approx(value, abs=0.03), name
        assert found["halves"]["both"]["distance"][name]["median"] == pytest.approx(1000 * value, abs=30), name
