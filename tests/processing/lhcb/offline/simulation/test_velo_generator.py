from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry import VeloGeometry
from hltnode.processing.lhcb.geometry.velo import BeamLine
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import (
    label_clusters,
    retina_ids,
    superpixel_ids,
)
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters, decode_superpixels, superpixels_of_pixels
from hltnode.protocol.lhcb.lhcb_id import velo_channel
from hltnode.protocol.lhcb.truth import McParticle, McVertex, decode_particles, decode_vertices
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.odin import CrossingType, decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

GEOMETRY = VeloGeometry.builtin()


def as_bytes(events: list[list[RawBank]]) -> list[list[tuple[int, int, int, bytes]]]:
    return [[(b.type, b.version, b.source_id, bytes(b.payload)) for b in banks] for banks in events]


def simulate(n: int, seed: int = 11, **options: object) -> list[list[RawBank]]:
    return list(simulate_events(n, seed, geometry=GEOMETRY, **options))  # type: ignore[arg-type]


def vertices_of(banks: list[RawBank]) -> list[McVertex]:
    return decode_vertices(next(bank for bank in banks if bank.type == LhcbBankType.MC_VERTICES))


@pytest.fixture(scope="module")
def sample() -> list[list[RawBank]]:
    return simulate(200)


@pytest.fixture(scope="module")
def particles(sample: list[list[RawBank]]) -> list[McParticle]:
    return [particle for banks in sample for particle in decode_particles(banks)]


def test_an_event_depends_on_seed_and_number_only() -> None:
    whole = as_bytes(simulate(6, seed=4))
    pieces = [*simulate(2, seed=4), *simulate(4, seed=4, first_event=2)]
    assert as_bytes(pieces) == whole
    assert as_bytes(simulate(6, seed=5)) != whole


def test_collisions_follow_a_beam_line_with_position_and_slope() -> None:
    beam = BeamLine(0.4, -0.3, 1e-3, -2e-3)
    tilted = simulate_events(20, 11, geometry=replace(GEOMETRY, beamline=beam))
    nominal = simulate(20)
    here, there = (
        np.array([(v.x, v.y, v.z) for banks in events for v in vertices_of(banks)]) for events in (nominal, tilted)
    )
    assert np.ptp(here[:, 2]) > 200.0
    np.testing.assert_array_equal(there[:, 2], here[:, 2])
    z = here[:, 2]
    expected = np.stack([0.4 + 1e-3 * z, -0.3 - 2e-3 * z], axis=1)
    np.testing.assert_allclose(there[:, :2] - here[:, :2], expected, atol=1e-6)


def test_an_event_has_odin_all_velo_banks_and_truth() -> None:
    (banks,) = simulate(1, run=77, first_event=12)
    assert [bank.type for bank in banks[:1]] == [BankType.ODIN]
    assert [b.source_id for b in banks if b.type == LhcbBankType.VP_RETINA_CLUSTER] == list(range(208))
    odin = decode_odin(banks[0])
    assert (odin.run, odin.event_id, odin.crossing_type) == (77, 12, CrossingType.BEAM_BEAM)
    assert odin.bunch_id < 3564
    assert odin.gps_time_us > decode_odin(simulate(1)[0][0]).gps_time_us


@pytest.mark.parametrize("velo_banks", ["retina", "superpixel"])
def test_the_ids_of_truth_are_those_of_decoding(velo_banks: VeloEncoding) -> None:
    n_named = n_decoded = 0
    for banks in simulate(5, velo_banks=velo_banks):
        if velo_banks == "retina":
            decoded = retina_ids(decode_retina_clusters(banks))
        else:
            sensor, col, row = (values.astype(np.int64) for values in decode_superpixels(banks).pixels())
            pixels = np.unique(sensor << 18 | col << 8 | row)
            decoded = superpixel_ids(pixels, label_clusters(pixels))
        named = {hit for particle in decode_particles(banks) for hit in particle.velo_ids}
        assert named <= set(decoded.tolist())
        n_named, n_decoded = n_named + len(named), n_decoded + len(decoded)
    # The others are noise, and delta electrons far from the crossing.
    assert 0.9 * n_decoded < n_named < n_decoded


def test_both_encodings_show_the_same_event() -> None:
    retina, superpixel = simulate(1), simulate(1, velo_banks="superpixel")
    by_retina, by_superpixel = decode_particles(retina[0]), decode_particles(superpixel[0])
    assert [(p.key, p.p, len(p.velo_ids)) for p in by_retina] == [(p.key, p.p, len(p.velo_ids)) for p in by_superpixel]
    assert vertices_of(retina[0]) == vertices_of(superpixel[0])


def test_super_pixels_are_marked_isolated_where_no_neighbour_fired() -> None:
    (banks,) = simulate(1, velo_banks="superpixel")
    written = decode_superpixels(banks)
    expected = superpixels_of_pixels(*written.pixels())
    np.testing.assert_array_equal(np.sort(written.isolated), np.sort(expected.isolated))
    assert 0.4 < written.isolated.mean() < 0.7  # 0.525 in the real events (docs/formats/velo-banks.md)


def test_a_particle_is_seen_with_hits_in_three_modules(particles: list[McParticle]) -> None:
    for particle in particles:
        modules = velo_channel(np.array(particle.velo_ids, dtype=np.uint32))[0] // 4
        assert particle.has_velo == (len(set(modules.tolist())) >= 3)
        assert particle.has_velo or not particle.is_long


def test_hits_lie_on_straight_lines_from_the_origin_of_fast_particles(particles: list[McParticle]) -> None:
    residuals = []
    for particle in particles:
        if not (particle.has_velo and particle.p > 20_000):
            continue
        sensor, chip, col, row = (v.astype(np.int64) for v in velo_channel(np.array(particle.velo_ids, np.uint32)))
        place = GEOMETRY.local_to_global(sensor, chip * 256 + col, row)
        flight = place[:, 2] - particle.vertex_z
        slope = 1 / np.sinh(particle.eta)
        residuals.append(place[:, 0] - particle.vertex_x - slope * np.cos(particle.phi) * flight)
    spread = np.abs(np.concatenate(residuals))
    assert np.median(spread) < 0.030
    assert np.percentile(spread, 95) < 0.2


def test_tracks_of_a_collision_are_the_seen_particles_straight_from_it(sample: list[list[RawBank]]) -> None:
    for banks in islice(sample, 20):
        seen = [p for p in decode_particles(banks) if p.has_velo and p.mother_pid == 0]
        for vertex in vertices_of(banks):
            own = [p for p in seen if abs(p.vertex_z - vertex.z) < 1e-4 and abs(p.vertex_x - vertex.x) < 1e-5]
            assert len(own) == vertex.n_tracks


def test_heavy_and_strange_particles_and_electrons_occur(particles: list[McParticle]) -> None:
    seen = [p for p in particles if p.has_velo]
    assert any(p.from_b for p in seen)
    assert any(p.from_c for p in seen)
    assert 0.02 < np.mean([p.from_strange for p in seen]) < 0.10
    assert 0.08 < np.mean([abs(p.pid) == 11 for p in seen]) < 0.20
    beauty = [np.hypot(p.vertex_x, p.vertex_y) for p in particles if p.from_b]
    assert np.median(beauty) > 0.05


@pytest.mark.physics
def test_simulated_events_look_like_the_real_ones(
    shared: Path, sample: list[list[RawBank]], particles: list[McParticle]
) -> None:
    path = shared / "data" / "lhcb-minbias-mdf" / "minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
    real = [list(record.banks()) for record in iter_records(path.read_bytes())]
    real_particles = [p for banks in real for p in decode_particles(banks) if p.has_velo]
    simulated = [p for p in particles if p.has_velo]

    def hits_per_event(events: list[list[RawBank]]) -> float:
        return float(np.mean([len(decode_retina_clusters(banks).sensor) for banks in events]))

    def tracks_per_collision(events: list[list[RawBank]]) -> float:
        return float(np.mean([v.n_tracks for banks in events for v in vertices_of(banks)]))

    assert hits_per_event(sample) == pytest.approx(hits_per_event(real), rel=0.20)
    assert tracks_per_collision(sample) == pytest.approx(tracks_per_collision(real), rel=0.20)
    assert len(simulated) / len(sample) == pytest.approx(len(real_particles) / len(real), rel=0.20)
    for quantity in ("p", "pt", "eta"):
        ours, theirs = (np.median([getattr(p, quantity) for p in ps]) for ps in (simulated, real_particles))
        assert ours == pytest.approx(theirs, rel=0.25, abs=0.3), quantity
    ours, theirs = (np.mean([len(p.velo_ids) for p in ps]) for ps in (simulated, real_particles))
    assert ours == pytest.approx(theirs, rel=0.15)


def test_a_crossing_without_collisions_is_still_an_event() -> None:
    for banks in simulate(3, nu=0.0):
        assert vertices_of(banks) == []
        assert decode_particles(banks) == []
        assert len(decode_retina_clusters(banks).sensor) < 30


def test_more_collisions_make_more_hits() -> None:
    few, many = (
        np.mean([len(decode_retina_clusters(banks).sensor) for banks in simulate(10, nu=nu)]) for nu in (2.0, 40.0)
    )
    assert many > 8 * few


def test_impossible_requests_are_refused_before_the_first_event() -> None:
    for bad in ({"n": -1}, {"seed": -1}, {"first_event": -1}, {"nu": -0.1}, {"nu": float("nan")}, {"nu": 1e6}):
        arguments = {"n": 1, "seed": 1} | bad
        with pytest.raises(ValueError, match=r"nu =|must not be negative"):
            simulate_events(geometry=GEOMETRY, **arguments)
