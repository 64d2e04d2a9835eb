"""Particles that reach the calorimeter, and that its simulation changes nothing in other detectors."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.response.ecal_response import ShowerKind
from hltnode.processing.lhcb.offline.simulation.transport import calorimeter_particles
from hltnode.processing.lhcb.offline.simulation.transport.calorimeter_particles import radiated_photons
from hltnode.processing.lhcb.offline.simulation.transport.propagation import FIRST_Z, Flights, Propagation, Radiation
from hltnode.processing.offline.event_random import EventRandom
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.truth_ecal import decode_ecal_truth
from hltnode.protocol.raw_data.raw_bank import RawBank

N = 200
FRONT = 12_600.0


def flown(mass: float) -> tuple[Flights, Radiation]:
    """Particles of 20 GeV through all material in front of the calorimeter."""
    flights = Flights(
        *(np.zeros(N, np.int64), np.zeros(N), np.zeros(N), np.full(N, FIRST_Z), np.full(N, 0.08), np.full(N, 0.06)),
        *(np.full(N, 20_000.0), np.full(N, -1.0), np.full(N, mass), np.full(N, np.inf)),
    )
    radiation = Radiation()
    random = EventRandom([np.random.default_rng(3)])
    Propagation(Magnet.builtin(), np.array([2350.0, 9400.0])).propagate(random, flights, radiation=radiation)
    return flights, radiation


def test_electrons_lose_to_photons_what_they_do_not_keep() -> None:
    electrons, radiation = flown(0.511)
    photons = radiation.joined()
    lost = 20_000.0 * N - electrons.p.sum()
    # Ionisation takes about 100 MeV of each.
    assert photons.p.sum() == pytest.approx(lost, abs=200.0 * N)
    assert 0.05 < photons.p.sum() / (20_000.0 * N) < 0.5
    assert len(flown(139.6)[1].joined()) == 0


def test_photons_fly_straight_to_the_calorimeter_or_convert() -> None:
    radiation = flown(0.511)[1]
    photons = radiation.joined()
    wanted = photons.p > 10.0
    arrived = radiated_photons(EventRandom([np.random.default_rng(5)]), radiation, FRONT)
    assert 0.6 * wanted.sum() < len(arrived) < wanted.sum()
    assert set(arrived.kind.tolist()) == {ShowerKind.ELECTROMAGNETIC}
    assert arrived.energy.min() > 10.0
    made = {(energy, x) for energy, x in zip(photons.p, photons.x + photons.tx * (FRONT - photons.z), strict=True)}
    assert set(zip(arrived.energy, arrived.x, strict=True)) <= made


def events(seed: int = 9) -> list[list[RawBank]]:
    detector = Detector.builtin()
    return list(FullSimulation(detector, sample_source("minbias", 5.0, detector.velo.beamline)).events(3, seed))


def test_other_banks_do_not_depend_on_the_calorimeter(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {LhcbBankType.ECAL_PACKED, LhcbBankType.MC_ECAL}

    def split(found: list[list[RawBank]]) -> tuple[list[bytes], list[bytes]]:
        banks = [bank for of_event in found for bank in of_event]
        others = [bytes(bank.payload) for bank in banks if bank.type not in own]
        return others, [bytes(bank.payload) for bank in banks if bank.type in own]

    others, of_ecal = split(events())
    assert len(of_ecal) == 3 * 29
    monkeypatch.setattr(calorimeter_particles, "PI0_RATE", 2.0)
    changed_others, changed = split(events())
    assert changed_others == others
    assert changed != of_ecal


def test_the_truth_of_the_calorimeter_names_particles_of_the_event() -> None:
    for banks in events():
        (showers,) = (decode_ecal_truth(bank) for bank in banks if bank.type == LhcbBankType.MC_ECAL)
        photon = showers["pid"] == 22
        assert photon.sum() > 10
        assert (showers["key"][photon] == -1).all()
        charged = ~np.isin(showers["pid"], (22, 2112))
        assert charged.sum() > 10
        assert (showers["key"][charged] >= 0).all()
        assert showers["visible"].min() > 100.0
        assert (np.abs(showers["x"]) < 4000).all()
