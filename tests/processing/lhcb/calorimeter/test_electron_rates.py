"""The electron network beside E/p in simulated events that its training has not seen, through the whole sequence."""

from __future__ import annotations

from typing import Any

import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.velo_generator import DEFAULT_NU
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained

pytestmark = pytest.mark.physics


def electron_result(n_events: int, seed: int) -> dict[str, Any]:
    """The object "electron" of hltnode validate for simulated minimum-bias events."""
    detector = Detector.builtin()
    chain = CHAIN.with_sequence("hlt1_2026")
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels, threads=1, device=0),
        chain.load_geometry(None),
        CHAIN.load_trigger(None, "hlt1_2026"),
        BatchLimits(events=64, input_bytes=16 << 20),
        retain=retained(chain.sequence),
    )
    checker = Checker()
    events = FullSimulation(detector, sample_source("minbias", DEFAULT_NU, detector.velo.beamline)).events(
        n_events, seed
    )
    for batch in OfflineRunner(engine).run(encode_meps(engine.chain, events, 16, "auto")):
        check_batch(checker, batch)
    engine.close()
    result: dict[str, Any] = checker.result()["electron"]
    return result


def test_the_network_finds_more_electrons_than_energy_over_momentum() -> None:
    found = electron_result(40, 77)
    network = found["network"]
    assert found["electrons"] > 40
    at = network["at_hadron_rate_of_eop"]
    assert at["hadron_rate"] <= found["hadron_rate"]
    assert at["efficiency"] > found["efficiency"] + 0.05
    assert network["hadron_rate_at_efficiency_of_eop"] < 0.8 * found["hadron_rate"]
    assert network["efficiency"] == sorted(network["efficiency"], reverse=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_rates_of_two_thousand_events_are_those_of_the_documentation() -> None:
    """docs/physics/calorimeter.md; its events have other random numbers."""
    found = electron_result(2200, 903)
    network = found["network"]
    assert found["electrons"] > 3000
    assert found["efficiency"] == pytest.approx(0.806, abs=0.02)
    assert found["hadron_rate"] == pytest.approx(0.034, abs=0.003)
    assert network["at_hadron_rate_of_eop"]["efficiency"] == pytest.approx(0.943, abs=0.015)
    assert network["hadron_rate_at_efficiency_of_eop"] == pytest.approx(0.017, abs=0.003)
