"""Simulated decays: kinematics, light, and the same bytes whatever the number of processes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hltnode.processing.na62.detector_constants import (
    KAON_MASS,
    KAON_MOMENTUM,
    MUON_MASS,
    NEUTRAL_PION_MASS,
    PION_MASS,
)
from hltnode.processing.na62.offline.simulation.decays import Decay, decay_momenta, drawn_decay
from hltnode.processing.na62.offline.simulation.events import Conditions, ring_radius, simulated_event
from hltnode.processing.na62.offline.simulation.sample import (
    EVENTS_PER_BLOCK,
    RichOptions,
    RichSample,
    encode_block,
)
from hltnode.processing.na62.rich.pmt_positions import positions
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.na62.rich_banks import RICH_SOURCE
from hltnode.protocol.raw_data.mep import iter_meps
from hltnode.protocol.raw_data.mfp import events_of_mfps

QUIET = Conditions(decay=Decay.TRACKS, accidentals=0.0, noise=0.0, showers=0.0)
KAON = np.array([0.0, 0.0, KAON_MOMENTUM, np.hypot(KAON_MOMENTUM, KAON_MASS)])


@pytest.mark.parametrize(
    ("decay", "mass", "missing"),
    [
        (Decay.MUON, MUON_MASS, 0.0),
        (Decay.TWO_PIONS, PION_MASS, NEUTRAL_PION_MASS),
        (Decay.THREE_PIONS, PION_MASS, 0.0),
    ],
)
def test_decays_conserve_momentum_and_energy(decay: Decay, mass: float, missing: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        momenta, of_mass = decay_momenta(rng, decay)
        energies = np.sqrt((momenta**2).sum(1) + mass**2)
        rest = KAON - np.append(momenta.sum(0), energies.sum())
        assert of_mass == mass
        assert rest[3] ** 2 - (rest[:3] ** 2).sum() == pytest.approx(missing**2, abs=1e-9)
        if decay is Decay.THREE_PIONS:
            np.testing.assert_allclose(rest, 0.0, atol=1e-9)


def test_decays_have_the_branching_fractions() -> None:
    rng = np.random.default_rng(2)
    drawn = np.bincount([drawn_decay(rng) for _ in range(2000)], minlength=4)[1:] / 2000
    np.testing.assert_allclose(drawn, np.array([0.6356, 0.2067, 0.0558]) / 0.8981, atol=0.03)


def test_rings_grow_with_the_momentum_from_the_threshold_on() -> None:
    momenta = np.array([12.0, 15.0, 35.0, 1e6])
    np.testing.assert_allclose(ring_radius(momenta, PION_MASS), [0.0, 105.9, 178.0, 190.5], atol=0.5)


def test_hits_lie_on_the_true_ring_and_noise_does_not() -> None:
    rng = np.random.default_rng(3)
    off, numbers = [], []
    for _ in range(100):
        hits, (ring,) = simulated_event(rng, QUIET)
        place = positions()[hits["pmt"]]
        off.append(np.hypot(place[:, 0] - ring["x"], place[:, 1] - ring["y"]) - ring["radius"])
        numbers.append(len(hits))
        assert len(hits) == ring["hits"] == len(set(hits["pmt"].tolist()))
    assert np.concatenate(off).std() == pytest.approx(5.0, abs=0.5)
    assert 15.0 < np.mean(numbers) < 20.0
    more = [len(simulated_event(rng, replace(QUIET, noise=10.0))[0]) for _ in range(100)]
    assert np.mean(more) - np.mean(numbers) == pytest.approx(10.0, abs=2.0)
    showers = [len(simulated_event(rng, replace(QUIET, showers=1.0))[0]) for _ in range(100)]
    assert np.mean(showers) - np.mean(numbers) > 5.0
    rings = [len(simulated_event(rng, replace(QUIET, accidentals=1.0))[1]) for _ in range(100)]
    assert np.mean(rings) == pytest.approx(2.0, abs=0.4)


def test_tracks_lie_at_the_distance_that_was_asked_for() -> None:
    _, rings = simulated_event(np.random.default_rng(4), replace(QUIET, rings=3, distance=80.0))
    away = np.hypot(rings["x"] - rings["x"][0], rings["y"] - rings["y"][0])
    np.testing.assert_allclose(away, [0.0, 80.0, 80.0], atol=1e-3)


def test_events_have_the_same_bytes_in_any_block() -> None:
    own = RichSample(SampleRequest(seed=6, run=12), RichOptions())
    whole = encode_block(own, 0, 10)
    assert encode_block(own, 0, 4) + encode_block(own, 4, 6) == whole
    assert encode_block(replace(own, request=SampleRequest(seed=7, run=12)), 0, 10) != whole
    blocks = list(own.blocks(EVENTS_PER_BLOCK + 1, jobs=1))
    assert [n for n, _ in blocks] == [EVENTS_PER_BLOCK, 1]
    assert b"".join(data for _, data in blocks).startswith(whole)


def test_a_mep_has_odin_and_the_hits_of_its_events() -> None:
    request = SampleRequest(seed=6, run=12, file_format="mep")
    (data,) = (made for _, made in RichSample(request, RichOptions()).blocks(5, jobs=1))
    (mep,) = iter_meps(data)
    assert [mfp.source_id for mfp in mep.mfps] == [0, RICH_SOURCE]
    assert [len(banks) for banks in events_of_mfps(mep.mfps)] == [2] * 5
