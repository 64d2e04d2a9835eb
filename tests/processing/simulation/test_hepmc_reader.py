import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.simulation.detector import Detector
from hltnode.processing.simulation.full_generator import FullSimulation
from hltnode.processing.simulation.hepmc_reader import HepmcError, HepmcSource
from hltnode.protocol.truth import decode_particles

BEAMLINE = (0.0, 0.0)


@pytest.fixture(scope="module")
def pyhepmc() -> Any:
    return pytest.importorskip("pyhepmc", reason="the extra hepmc is not installed")


@pytest.fixture
def file(pyhepmc: Any, tmp_path: Path) -> Path:
    """Three events in GeV and mm: a B+ that flies 5 mm and decays to a pion and a kaon, and a pion beside it."""
    path = tmp_path / "events.hepmc"
    with pyhepmc.open(str(path), "w") as out:
        for number in range(3):
            event = pyhepmc.GenEvent(pyhepmc.Units.GEV, pyhepmc.Units.MM)
            event.event_number = number
            beams = [pyhepmc.GenParticle((0, 0, pz, 7000), 2212, 4) for pz in (7000, -7000)]
            collision = pyhepmc.GenVertex((0, 0, 0, 0))
            decay = pyhepmc.GenVertex((0.3, 0.0, 5.0, 5.0))
            beauty = pyhepmc.GenParticle((3, 0, 50, 50.4), 521, 2)
            for beam in beams:
                collision.add_particle_in(beam)
            collision.add_particle_out(pyhepmc.GenParticle((0.5, 0.3, 10 + number, 10.1 + number), 211, 1))
            collision.add_particle_out(pyhepmc.GenParticle((0.5, 0.3, 10, 10.1), 22, 1))
            collision.add_particle_out(beauty)
            decay.add_particle_in(beauty)
            decay.add_particle_out(pyhepmc.GenParticle((2, 0.4, 30, 30.1), 321, 1))
            decay.add_particle_out(pyhepmc.GenParticle((1, -0.4, 20, 20.1), -211, 1))
            event.add_vertex(collision)
            event.add_vertex(decay)
            out.write(event)
    return path


def test_charged_final_particles_come_from_the_file(file: Path) -> None:
    source = HepmcSource(file, 0.0, BEAMLINE)
    for number in range(3):
        collisions = source(np.random.default_rng(number), number)
        particles = collisions.particles
        assert sorted(particles.pid.tolist()) == [-211, 211, 321]
        assert len(collisions.collision) == 1  # one straight from the collision
        assert particles.momentum[0, 2] == pytest.approx(1000.0 * (10 + number))
        np.testing.assert_allclose(particles.origin[0], collisions.positions[0])
        assert particles.from_beauty.tolist() == [False, True, True]
        np.testing.assert_allclose(particles.origin[1] - particles.origin[0], [0.3, 0.0, 5.0])
        assert particles.mother.tolist() == [0, 521, 521]


def test_pile_up_is_added_and_keeps_the_order(file: Path) -> None:
    collisions = HepmcSource(file, 5.0, BEAMLINE)(np.random.default_rng(7), 0)
    n = len(collisions.collision)
    assert collisions.particles.mother[:n].tolist() == [0] * n
    assert collisions.collision[-1] == len(collisions.positions) - 1
    assert np.count_nonzero(collisions.particles.from_beauty) >= 2


def test_events_of_a_file_go_through_the_whole_detector(file: Path) -> None:
    simulation = FullSimulation(Detector.builtin(), HepmcSource(file, 0.0, BEAMLINE))
    found = [decode_particles(banks) for banks in simulation.events(3, 1)]
    assert sum(particle.is_long for event in found for particle in event) >= 4
    assert all(particle.from_b == (abs(particle.mother_pid) == 521) for event in found for particle in event[:3])


def test_asking_for_more_events_than_the_file_has_is_refused(file: Path) -> None:
    with pytest.raises(HepmcError, match="3 events, event 7 is asked for"):
        HepmcSource(file, 0.0, BEAMLINE)(np.random.default_rng(1), 7)


def test_a_missing_file_and_one_of_another_kind_are_named(pyhepmc: Any, tmp_path: Path) -> None:
    with pytest.raises(HepmcError, match=r"nothing\.hepmc: no such file"):
        HepmcSource(tmp_path / "nothing.hepmc", 0.0, BEAMLINE)
    garbage = tmp_path / "garbage.hepmc"
    garbage.write_bytes(b"these are no events\n" * 5)
    with pytest.raises(HepmcError, match=r"garbage\.hepmc"):
        HepmcSource(garbage, 0.0, BEAMLINE)(np.random.default_rng(1), 0)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyhepmc", None)
    with pytest.raises(HepmcError, match=r"pip install 'hltnode\[hepmc\]'"):
        HepmcSource(tmp_path / "events.hepmc", 0.0, BEAMLINE)
