"""Electrons and clusters of the calorimeter against truth."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.lhcb.offline.validation.checker.calorimeter import EcalClusterCounts, ElectronCounts
from hltnode.processing.lhcb.offline.validation.checker.calorimeter_columns import ClusterTable, EcalTracks
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.protocol.lhcb.truth import McParticle, encode_particles
from hltnode.protocol.lhcb.truth_columns import decode_particle_columns
from hltnode.protocol.lhcb.truth_ecal import SHOWER
from tests.processing.lhcb.offline.validation.test_long_checks import long_particle, long_tracks

PLACE = np.array([[1000.0, 0.0], [1500.0, 0.0], [2000.0, 0.0], [2500.0, 0.0]])


def table(*particles: McParticle) -> ParticleTable:
    return ParticleTable.of_events([decode_particle_columns(encode_particles(particles))])


def tracks_in_ecal(
    in_ecal: list[bool], is_electron: list[bool], brem: list[float], response: list[float] | None = None
) -> EcalTracks:
    n = len(in_ecal)
    found = np.zeros(n) if response is None else np.array(response)
    return EcalTracks(np.array(in_ecal), np.array(is_electron), found, np.array(brem), PLACE[:n])


def clusters(*places: tuple[float, float], energy: float = 5000.0, et: float = 600.0) -> ClusterTable:
    n = len(places)
    return ClusterTable(
        np.zeros(n, np.int64), np.array(places), np.full(n, energy), np.full(n, et), np.full(n, 60.0)
    )  # fmt: skip


def test_electrons_and_hadrons_in_the_calorimeter_are_counted_once() -> None:
    particles = table(
        long_particle(1, pid=11),
        long_particle(2, pid=-11),
        long_particle(3, pid=211),
        long_particle(4, pid=13),
    )
    tracks = long_tracks(1, 2, 3, 4)
    counts = ElectronCounts()
    ecal = tracks_in_ecal([True, True, True, True], [True, False, True, True], [2000.0, 0.0, 0.0, 0.0])
    p = np.array([8000.0, 9000.0, 10_000.0, 10_000.0])
    counts.add(ecal, p, particles, match_tracks(tracks, particles))
    result = counts.result()
    del result["network"]
    assert result == {
        "electrons": 2,
        "efficiency": 0.5,
        "hadrons": 1,
        "hadron_rate": 1.0,
        "p_over_true": pytest.approx(0.85),
        "p_over_true_with_bremsstrahlung": pytest.approx(0.95),
    }


def test_the_network_is_compared_with_energy_over_momentum_at_equal_rates() -> None:
    """E/p finds one of two electrons and takes one of two hadrons; each particle counts with its best track."""
    particles = table(*(long_particle(i, pid=pid) for i, pid in enumerate((11, -11, 211, 321), 1)))
    tracks = long_tracks(1, 2, 3, 4)
    counts = ElectronCounts()
    ecal = tracks_in_ecal([True] * 4, [True, False, True, False], [0.0] * 4, [0.95, 0.6, 0.7, 0.2])
    counts.add(ecal, np.full(4, 1e4), particles, match_tracks(tracks, particles))
    network = counts.result()["network"]
    assert network["cuts"] == [0.5, 0.73, 0.9, 0.94, 0.98]
    assert network["efficiency"] == [1.0, 0.5, 0.5, 0.5, 0.0]
    assert network["hadron_rate"] == [0.5, 0.0, 0.0, 0.0, 0.0]
    # One hadron, that of 0.7, may be above the cut.
    assert network["at_hadron_rate_of_eop"] == {"cut": 0.2, "efficiency": 1.0, "hadron_rate": 0.5}
    # One electron, that of 0.95, must be found.
    assert network["hadron_rate_at_efficiency_of_eop"] == 0.0
    # Without hadrons, and without electrons that E/p finds, there is nothing to compare with.
    counts = ElectronCounts()
    ecal = tracks_in_ecal([True], [False], [0.0], [0.3])
    particles, tracks = table(long_particle(1, pid=11)), long_tracks(1)
    counts.add(ecal, np.full(1, 1e4), particles, match_tracks(tracks, particles))
    network = counts.result()["network"]
    assert network["at_hadron_rate_of_eop"] == {"cut": 0.0, "efficiency": 1.0, "hadron_rate": None}
    assert "hadron_rate_at_efficiency_of_eop" not in network


def test_tracks_beside_the_calorimeter_and_particles_that_are_not_long_do_not_count() -> None:
    particles = table(long_particle(1, pid=11), long_particle(2, pid=11, is_long=False), long_particle(3))
    tracks = long_tracks(1, 2, 3)
    counts = ElectronCounts()
    ecal = tracks_in_ecal([False, True, False], [True, True, True], [0.0, 0.0, 0.0])
    counts.add(ecal, np.full(3, 1e4), particles, match_tracks(tracks, particles))
    assert (counts.electrons, counts.hadrons) == (0, 0)
    assert counts.result()["efficiency"] is None


def test_clusters_are_found_within_a_cell_and_others_are_fakes() -> None:
    # E_T: 480 MeV for the first three photons, 300 MeV for the last one.
    showers = np.array(
        [
            (-1, 22, 1000.0, 0.0, 6100.0, 6000.0),
            (-1, 22, 1500.0, 0.0, 4100.0, 4000.0),
            (-1, 22, 2000.0, 0.0, 3100.0, 3000.0),
            (-1, 22, 2500.0, 0.0, 1500.0, 1500.0),
            (5, 211, 3000.0, 0.0, 9000.0, 1600.0),
            (6, 211, 3300.0, 0.0, 9000.0, 1400.0),
        ],
        SHOWER,
    )
    counts = EcalClusterCounts()
    found = clusters((1010.0, 0.0), (1559.0, 0.0), (2061.0, 0.0), (3000.0, 89.0), (3300.0, 0.0), (-2000.0, 0.0))
    counts.add(found, [showers])
    result = counts.result()
    assert result["photons"]["particles"] == 3
    assert result["photons"]["efficiency"] == pytest.approx(2 / 3)
    assert result["photons"]["energy_median"] == pytest.approx(np.median([5000 / 6100, 5000 / 4100]) - 1)
    # The cluster at 3,300 mm has less than 30 % of its energy from a particle, the one at -2,000 mm has none.
    assert (result["hard_clusters"], result["fake_rate"]) == (6, pytest.approx(2 / 6))
    # Below 400 MeV of E_T nothing is a fake, and without truth of the calorimeter nothing is known.
    counts = EcalClusterCounts()
    counts.add(clusters((-2000.0, 0.0), et=399.0), [showers])
    counts.add(clusters((-2000.0, 0.0)), [None])
    assert (counts.clusters, counts.hard, counts.fakes) == (2, 0, 0)


def test_electrons_have_a_cluster_where_their_track_goes() -> None:
    particles = table(long_particle(1, pid=11), long_particle(2, pid=11), long_particle(3))
    tracks = long_tracks(1, 2, 3)
    counts = EcalClusterCounts()
    ecal = tracks_in_ecal([True, True, True], [True] * 3, [0.0] * 3)
    matches = match_tracks(tracks, particles)
    counts.add_electrons(clusters((1030.0, 0.0), (2000.0, 0.0), energy=9000.0), ecal, tracks.event, particles, matches)
    result = counts.result()["electrons"]
    assert (result["particles"], result["efficiency"]) == (2, 0.5)
    assert result["energy_median"] == pytest.approx(-0.1)
    assert result["position_width_mm"] == pytest.approx(0.5 * 0.683 * 30.0)
