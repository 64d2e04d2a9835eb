import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.velo import Z_AXIS, BeamLine
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.collisions import SimulatedCollisions
from hltnode.processing.lhcb.offline.simulation.generation.hepmc_source import HepmcSource
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.hepmc import HepmcError
from hltnode.protocol.lhcb.truth import decode_particles

BEAMLINE = Z_AXIS


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


def one_event(source: HepmcSource, event_id: int, *, seed: int) -> SimulatedCollisions:
    (collisions,) = source(EventRandom([np.random.default_rng(seed)]), [event_id])
    return collisions


def test_charged_final_particles_come_from_the_file(file: Path) -> None:
    source = HepmcSource(file, 0.0, BEAMLINE)
    for number in range(3):
        collisions = one_event(source, number, seed=number)
        particles = collisions.particles
        assert sorted(particles.pid.tolist()) == [-211, 211, 321]
        assert len(collisions.collision) == 1  # one straight from the collision
        assert particles.momentum[0, 2] == pytest.approx(1000.0 * (10 + number))
        np.testing.assert_allclose(particles.origin[0], collisions.positions[0])
        assert particles.from_beauty.tolist() == [False, True, True]
        np.testing.assert_allclose(particles.origin[1] - particles.origin[0], [0.3, 0.0, 5.0])
        assert particles.mother.tolist() == [0, 521, 521]


def test_pile_up_is_added_and_keeps_the_order(file: Path) -> None:
    collisions = one_event(HepmcSource(file, 5.0, BEAMLINE), 0, seed=7)
    n = len(collisions.collision)
    assert collisions.particles.mother[:n].tolist() == [0] * n
    assert collisions.collision[-1] == len(collisions.positions) - 1
    assert np.count_nonzero(collisions.particles.from_beauty) >= 2


def test_collisions_of_a_file_and_their_pile_up_follow_the_beam_line(file: Path) -> None:
    tilted = BeamLine(0.4, -0.3, 1e-3, -2e-3)
    nominal, moved = (one_event(HepmcSource(file, 5.0, beam), 0, seed=7).positions for beam in (BEAMLINE, tilted))
    assert len(nominal) > 1
    np.testing.assert_array_equal(moved[:, 2], nominal[:, 2])
    np.testing.assert_allclose(moved[:, :2] - nominal[:, :2], tilted.at(nominal[:, 2]), atol=1e-12)


def test_events_of_a_file_go_through_the_whole_detector(file: Path) -> None:
    simulation = FullSimulation(Detector.builtin(), HepmcSource(file, 0.0, BEAMLINE))
    found = [decode_particles(banks) for banks in simulation.events(3, 1)]
    assert sum(particle.is_long for event in found for particle in event) >= 4
    assert all(particle.from_b == (abs(particle.mother_pid) == 521) for event in found for particle in event[:3])


def test_a_request_for_more_events_than_in_the_file_is_refused(file: Path) -> None:
    with pytest.raises(HepmcError, match="event 7 is requested, but only 3 events can be read"):
        one_event(HepmcSource(file, 0.0, BEAMLINE), 7, seed=1)


def test_a_missing_file_and_one_of_another_kind_are_named(pyhepmc: Any, tmp_path: Path) -> None:
    with pytest.raises(HepmcError, match=r"nothing\.hepmc: no such file"):
        HepmcSource(tmp_path / "nothing.hepmc", 0.0, BEAMLINE)
    garbage = tmp_path / "garbage.hepmc"
    garbage.write_bytes(b"these are no events\n" * 5)
    with pytest.raises(HepmcError, match=r"garbage\.hepmc"):
        one_event(HepmcSource(garbage, 0.0, BEAMLINE), 0, seed=1)


def test_without_the_extra_the_error_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyhepmc", None)
    with pytest.raises(HepmcError, match=r"pip install .*\[hepmc\]'"):
        HepmcSource(tmp_path / "events.hepmc", 0.0, BEAMLINE)


Edit = Callable[[bytes], bytes]


def edited(file: Path, change: Edit) -> Path:
    path = file.with_name("edited.hepmc.gz")
    path.write_bytes(change(gzip.compress(file.read_bytes(), mtime=0)))
    return path


def unpacked(change: Edit) -> Edit:
    return lambda packed: gzip.compress(change(gzip.decompress(packed)), mtime=0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda packed: packed[:12], "not a HepMC file that can be read: Compressed file ended"),
        (lambda packed: packed[:-40], "event 2 is requested, but only 2 events can be read"),
        (lambda packed: packed[:20] + b"\xff" * 40 + packed[60:], "cannot be read|not a HepMC file"),
        (unpacked(lambda text: text[: len(text) // 2]), "event 1 is requested, but only 1 events can be read"),
        (unpacked(lambda text: b""), "not a HepMC file"),
        (unpacked(lambda text: text.replace(b"1.0000000000000000e+01", b"nan", 1)), "event 0: particle 211 of .*nan"),
        (
            unpacked(lambda text: text.replace(b"1.0000000000000000e+01", b"1e300", 1)),
            "event 0: particle 211 .*impossible",
        ),
    ],
)
def test_damaged_files_are_named_with_what_is_wrong(file: Path, change: Edit, words: str) -> None:
    path = edited(file, change)
    source = HepmcSource(path, 0.0, BEAMLINE)
    with pytest.raises(HepmcError, match=rf"edited\.hepmc\.gz.*({words})"):
        _ = [one_event(source, number, seed=number) for number in range(3)]


def test_a_particle_that_is_its_own_ancestor_does_not_block_the_reader(file: Path) -> None:
    # The pion of the decay enters the vertex from which it comes.
    path = edited(file, unpacked(lambda text: text.replace(b"V -2 0 [5]", b"V -2 0 [7]")))
    particles = one_event(HepmcSource(path, 0.0, BEAMLINE), 0, seed=1).particles
    assert sorted(particles.mother.tolist()) == [-211, 0, 0]


def test_the_heavy_ancestor_is_named_with_its_lifetime(file: Path) -> None:
    particles = one_event(HepmcSource(file, 0.0, BEAMLINE), 0, seed=1).particles
    assert particles.dom_pid.tolist() == [-999_999, 521, 521]
    assert particles.dom_pt[1] == pytest.approx(3000.0)
    mass, p = 1000 * np.sqrt(50.4**2 - 3**2 - 50**2), 1000 * np.hypot(3, 50)
    assert particles.dom_tau[1] == pytest.approx(np.hypot(0.3, 5.0) * mass / p / 299.792458)
    assert len(set(particles.dom_key[1:].tolist())) == 1


def chain(pyhepmc: Any, path: Path, collision: tuple[float, ...], *decays: tuple[int, int, int, float]) -> None:
    """One event whose collision is at a given position, with decays mother -> daughter and stable pion after a flight
    in z (mm)."""
    event = pyhepmc.GenEvent(pyhepmc.Units.GEV, pyhepmc.Units.MM)
    first = pyhepmc.GenVertex(collision)
    for pz in (7000, -7000):
        first.add_particle_in(pyhepmc.GenParticle((0, 0, pz, 7000), 2212, 4))
    first.add_particle_out(pyhepmc.GenParticle((0.5, 0.3, 10, 10.1), 211, 1))
    event.add_vertex(first)
    for mother_id, daughter, pion, flight in decays:
        mother = pyhepmc.GenParticle((1, 0, 30, 31), mother_id, 2)
        first.add_particle_out(mother)
        decay = pyhepmc.GenVertex((collision[0], collision[1], collision[2] + flight, 0.0))
        decay.add_particle_in(mother)
        decay.add_particle_out(pyhepmc.GenParticle((0.5, 0, 15, 15.1), daughter, 1))
        decay.add_particle_out(pyhepmc.GenParticle((0.5, 0, 15, 15.1), pion, 1))
        event.add_vertex(decay)
    with pyhepmc.open(str(path), "w") as out:
        out.write(event)


def test_strange_are_daughters_of_long_lived_particles_and_not_of_resonances(pyhepmc: Any, tmp_path: Path) -> None:
    path = tmp_path / "decays.hepmc"
    chain(pyhepmc, path, (0, 0, 0, 0), (310, 211, -211, 20.0), (333, 321, -321, 0.0), (23, 13, -13, 0.0))
    particles = one_event(HepmcSource(path, 0.0, BEAMLINE), 0, seed=1).particles
    by_mother = {int(one): bool(flag) for one, flag in zip(particles.mother, particles.from_strange, strict=True)}
    assert by_mother == {0: False, 310: True, 333: False, 23: False}
    assert not particles.from_charm.any()


def test_a_collision_that_the_generator_has_moved_is_moved_back(pyhepmc: Any, tmp_path: Path) -> None:
    path = tmp_path / "moved.hepmc"
    chain(pyhepmc, path, (0.02, -0.03, 44.0, 0.0), (521, 321, -211, 5.0))
    collisions = one_event(HepmcSource(path, 0.0, BEAMLINE), 0, seed=1)
    assert len(collisions.collision) == 1
    np.testing.assert_allclose(collisions.particles.origin[0], collisions.positions[0], atol=1e-9)
    np.testing.assert_allclose(collisions.particles.origin[1] - collisions.positions[0], [0, 0, 5.0], atol=1e-9)
