"""Simulated events of the TPC: helices, decays, clusters, and the same bytes whatever the number of processes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.alice.detector_constants import KG_TO_CURVATURE
from hltnode.processing.alice.geometry.cluster_errors import cluster_variances
from hltnode.processing.alice.geometry.slices import global_from_local
from hltnode.processing.alice.geometry.tpc_geometry import FILE_NAME, builtin_geometry
from hltnode.processing.alice.offline.simulation import outgoing
from hltnode.processing.alice.offline.simulation.clusters import EDGE, MIN_CHARGE, SEPARATION, Response, clusters_of
from hltnode.processing.alice.offline.simulation.crossings import Crossings
from hltnode.processing.alice.offline.simulation.curling import curl
from hltnode.processing.alice.offline.simulation.events import SimulatedEvent, packed
from hltnode.processing.alice.offline.simulation.outgoing import follow_outwards, is_outgoing
from hltnode.processing.alice.offline.simulation.particles import (
    Particles,
    from_material,
    joined,
    masses,
    primaries,
    v0_decays,
)
from hltnode.processing.alice.offline.simulation.sample import (
    SampleName,
    TpcOptions,
    TpcSample,
    banks_of,
    event_of,
    source_numbers,
)
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.alice.tpc_banks import N_ROWS, N_SLICES, Origin, banks_of_clusters, places_of_clusters, truth_of
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mep import iter_meps

GEOMETRY = builtin_geometry()
PERFECT = Response(efficiency=1.0, noise=0.0)


def sample(seed: int = 1, file_format: Any = "mdf", geometry: Path | None = None, **options: Any) -> TpcSample:
    request = SampleRequest(seed=seed, file_format=file_format, geometry=geometry)
    return TpcSample(request, TpcOptions(pile_up=0.3, **options))


def some(n: int, pt: float, charge: int = 1, seed: int = 1) -> Particles:
    """Pions from the centre in all directions, with one pT."""
    rng = np.random.default_rng(seed)
    made = primaries(rng, n, 0.2, 0.0, 0)
    phi = rng.uniform(0.0, 2.0 * np.pi, n)
    momentum = np.column_stack([pt * np.cos(phi), pt * np.sin(phi), pt * rng.uniform(-0.8, 0.8, n)])
    return replace(made, pdg=np.full(n, 211 * charge), momentum=momentum)


def distance_from_helix(particles: Particles, crossings: Crossings) -> np.ndarray:
    """How far crossings are from the circles of their particles and, along z, from their helices; f64[2, n] in cm."""
    x, y = global_from_local(crossings.slice_number, GEOMETRY.row_x[crossings.row], crossings.y)
    px, py, pz = particles.momentum[crossings.particle].T
    vx, vy, vz = particles.vertex[crossings.particle].T
    pt = np.hypot(px, py)
    # A positive particle in a field along z turns clockwise: the centre is on its right.
    curvature = KG_TO_CURVATURE * 5.0 * particles.charge[crossings.particle] / pt
    cx, cy = vx + py / pt / curvature, vy - px / pt / curvature
    radius = 1.0 / np.abs(curvature)
    turned = np.arctan2(vy - cy, vx - cx) - np.arctan2(y - cy, x - cx)
    arc = np.mod(turned * np.sign(curvature), 2.0 * np.pi) * radius
    turns = np.rint(((crossings.z - vz) * pt / pz - arc) / (2.0 * np.pi * radius))
    z = vz + pz / pt * (arc + turns * 2.0 * np.pi * radius)
    return np.array([np.hypot(x - cx, y - cy) - radius, crossings.z - z])


def test_outgoing_and_curling_particles_follow_the_same_exact_helix(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WALL_THICKNESS", "WALL_LOSS", "GAS_LOSS"):
        monkeypatch.setattr(outgoing, name, 0.0)
    monkeypatch.setattr(outgoing, "GAS_RADIATION_LENGTH", 1e30)
    fast = joined([some(30, 0.5), some(30, 0.5, charge=-1)])
    assert is_outgoing(fast).all()
    assert not is_outgoing(some(5, 0.19)).any()
    crossings, states = follow_outwards(np.random.default_rng(1), fast, np.arange(60), GEOMETRY)
    assert len(crossings) > 60 * 150
    np.testing.assert_allclose(distance_from_helix(fast, crossings), 0.0, atol=1e-6)
    exact = curl(fast, np.arange(60), GEOMETRY)
    np.testing.assert_allclose(distance_from_helix(fast, exact), 0.0, atol=1e-6)

    def rows(of: Crossings) -> set[tuple[int, ...]]:
        keys = (of.particle, of.slice_number, of.row, np.rint(of.y * 100), np.rint(of.z * 100))
        return set(zip(*(key.tolist() for key in keys), strict=True))

    assert len(rows(crossings) ^ rows(exact)) < 0.01 * len(crossings)
    # The slope of crossings is that of the circle, and the states are those of the first rows.
    pair = np.flatnonzero((np.diff(crossings.particle) == 0) & (np.diff(crossings.row) == 1))
    assert not pair.size
    first = states[states["row"] == 0]
    of_row = crossings.chosen(crossings.row == 0)
    np.testing.assert_array_equal(first["particle"], of_row.particle)
    np.testing.assert_allclose(first["sin_phi"] / np.sqrt(1 - first["sin_phi"] ** 2), of_row.tan_y, rtol=1e-5)
    np.testing.assert_allclose(first["kappa"], fast.charge[first["particle"]] / 0.5, rtol=1e-5)
    np.testing.assert_allclose(first["lambda"], fast.momentum[first["particle"], 2] / 0.5, rtol=1e-5, atol=1e-6)
    slow = some(20, 0.1)
    turning = curl(slow, np.arange(20), GEOMETRY)
    np.testing.assert_allclose(distance_from_helix(slow, turning), 0.0, atol=1e-6)
    # A radius of 67 cm does not reach x = 134 cm, and rows are crossed twice.
    assert GEOMETRY.row_x[turning.row.max()] < 134.0
    assert len(turning) > 1.5 * len(np.unique(turning.particle * N_ROWS + turning.row))


def test_scattering_and_energy_loss_have_the_expected_size() -> None:
    slow, fast = some(400, 0.3), some(400, 3.0)
    spread = []
    for particles in (slow, fast):
        _, states = follow_outwards(np.random.default_rng(1), particles, np.arange(400), GEOMETRY)
        first = states[states["row"] == 0]
        true = particles.momentum[first["particle"]]
        slope = true[:, 2] / np.hypot(true[:, 0], true[:, 1])
        momentum = np.linalg.norm(true, axis=1)
        beta = momentum / np.hypot(momentum, particles.mass[first["particle"]])
        # Highland without its logarithm for a sheet that is crossed at an angle.
        angle = 0.0136 / (beta * momentum) * np.sqrt(0.1 * np.sqrt(1 + slope**2)) * (1 + slope**2)
        spread.append(np.std((first["lambda"] - slope) / angle))
        ratio = np.abs(first["kappa"]) * np.hypot(true[:, 0], true[:, 1])
        assert 1.0 < np.median(ratio) < (1.05 if particles is slow else 1.01)
    np.testing.assert_allclose(spread, 1.0, atol=0.12)


def test_v0_decays_conserve_momentum_and_energy() -> None:
    v0 = v0_decays(np.random.default_rng(1), 50, 0.2, 1.0, 0)
    energy = np.sqrt((v0.momentum**2).sum(1) + masses(v0.pdg) ** 2)
    assert set(np.abs(v0.pdg)) == {211, 310, 2212, 3122}
    assert v0.mother.tolist() == [-1] * 50 + 2 * list(range(50))
    np.testing.assert_allclose(v0.momentum[:50], v0.momentum[50:100] + v0.momentum[100:], atol=1e-9)
    np.testing.assert_allclose(energy[:50], energy[50:100] + energy[100:], rtol=1e-9)
    np.testing.assert_array_equal(v0.charge[50:100] + v0.charge[100:], 0.0)
    assert (v0.charge[:50] == 0.0).all()
    flight = v0.vertex[50:100] - v0.vertex[:50]
    np.testing.assert_allclose(np.cross(flight, v0.momentum[:50]), 0.0, atol=1e-9)
    material = from_material(np.random.default_rng(1), 100, 0.0, 2)
    np.testing.assert_array_equal(material.charge, np.sign(material.pdg) * np.where(np.abs(material.pdg) == 11, -1, 1))
    shifted = joined([material, v0])
    assert shifted.mother[150:].tolist() == 2 * list(range(100, 150))


def placed(y: Any, z: Any, particle: Any = 0, row: Any = 10, tan_y: Any = 0.0) -> Crossings:
    y, z, particle, row, tan_y = np.broadcast_arrays(*map(np.atleast_1d, (y, z, particle, row, tan_y)))
    return Crossings(
        particle=particle.astype(np.int64),
        slice_number=np.where(z < 0, 18, 0),
        row=row.astype(np.int64),
        y=y.astype(float),
        z=z.astype(float),
        tan_y=tan_y.astype(float),
        tan_z=np.zeros(len(y)),
    )


def found(crossings: Crossings, response: Response = PERFECT, shift: float = 0.0, charge: float = 1.0) -> Any:
    n = int(crossings.particle.max()) + 1
    rng = np.random.default_rng(3)
    return clusters_of(rng, crossings, np.full(n, shift), np.full(n, charge), GEOMETRY, response)


def test_resolution_grows_with_drift_and_angle_as_its_formula_says() -> None:
    # One cluster in each slice and row at a time, so that none merges: particles differ, planes repeat far apart in z.
    n = 3000
    row = np.tile(np.arange(100), n // 100)
    for drift, tan_y in ((10.0, 0.0), (200.0, 0.0), (10.0, 0.5)):
        z = GEOMETRY.half_length - drift + np.repeat(np.arange(n // 100), 100) * 1e-9
        y_variance, z_variance = cluster_variances(
            GEOMETRY.pad_length[row], np.full(n, drift), np.full(n, tan_y), np.zeros(n)
        )
        pulls = []
        for i in range(0, n, 100):
            part = placed(np.zeros(100), z[i : i + 100], np.arange(100), row[:100], tan_y)
            clusters = clusters_of(np.random.default_rng(i), part, np.zeros(100), np.ones(100), GEOMETRY, PERFECT)
            at = clusters.row
            pulls.append(clusters.y / np.sqrt(y_variance[at]))
            pulls.append((clusters.drift - z[i]) / np.sqrt(z_variance[at]))
        assert np.std(np.concatenate(pulls[::2])) == pytest.approx(1.0, abs=0.05)
        assert np.std(np.concatenate(pulls[1::2])) == pytest.approx(1.0, abs=0.05)
    wide = cluster_variances(np.array([0.75, 1.5]), np.array([200.0, 200.0]), np.zeros(2), np.zeros(2))[0]
    np.testing.assert_allclose(wide, 4e-4 + 0.022**2 * 2 / 36 * 200 / np.array([0.75, 1.5]))


def test_clusters_closer_than_two_widths_merge_to_that_of_the_larger_charge() -> None:
    width = 0.2
    far, near = 1.3 * SEPARATION * width, 0.6 * SEPARATION * width
    at_pads = GEOMETRY.half_length - 1.0
    assert len(found(placed([0.0, far], at_pads, [0, 1]))) == 2
    merged = found(placed([0.0, near, 0.5 * near], [at_pads] * 3, [0, 1, 2]))
    assert len(merged) == 1
    assert 0.0 < merged.y[0] < near
    alone = found(placed([0.0], [at_pads]))
    assert merged.charge[0] > 1.5 * alone.charge[0]
    # The other row and the other slice have clusters of their own.
    assert len(found(placed([0.0, 0.0], at_pads, [0, 1], [10, 11]))) == 2
    assert len(found(placed([0.0, 0.0], [at_pads, -at_pads], [0, 1]))) == 2
    n = 200
    rng = np.random.default_rng(1)
    charges = np.where(np.arange(n) % 2, 20.0, 1.0)
    pairs = placed(np.zeros(n), np.repeat(rng.permutation(n // 2) * 2.0 + 5.0, 2), np.arange(n), 120)
    clusters = clusters_of(rng, pairs, np.zeros(n), charges, GEOMETRY, PERFECT)
    assert len(clusters) <= n // 2 + 8
    assert np.mean(clusters.particle % 2) > 0.9


def test_the_pads_of_a_geometry_decide_resolution_width_and_charge() -> None:
    """Pads four times as long: four times the charge, and nearly twice the error in y of inclined tracks."""
    n = 100
    long = replace(GEOMETRY, pad_length=4.0 * GEOMETRY.pad_length)
    crossings = placed(np.zeros(n), GEOMETRY.half_length - 1.0, np.arange(n), np.arange(n), 0.8)
    one, other = (
        clusters_of(np.random.default_rng(3), crossings, np.zeros(n), np.ones(n), each, PERFECT)
        for each in (GEOMETRY, long)
    )
    np.testing.assert_allclose(other.charge, 4.0 * one.charge)
    of_angle = 0.8**2 * GEOMETRY.pad_length[one.row] / (12 * 14)
    of_drift = 0.022**2 * 2 / 36 / GEOMETRY.pad_length[one.row]
    errors = [np.sqrt(4e-4 + of_drift / times + of_angle * times) for times in (1, 4)]
    np.testing.assert_allclose(other.y / one.y, errors[1] / errors[0])
    # Clusters that are 0.9 cm apart merge if their charge is spread over long pads.
    pair = placed([0.0, 0.9], GEOMETRY.half_length - 1.0, [0, 1], 10, 0.8)
    assert len(found(pair)) == 2
    assert len(clusters_of(np.random.default_rng(3), pair, np.zeros(2), np.ones(2), long, PERFECT)) == 1


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("name", "n", "expected", "allowed"),
    [
        # Three standard deviations of the mean: an event of pp differs by half from another one.
        (SampleName.PP, 60, 48_189, 0.18),
        (SampleName.PERIPHERAL, 4, 4_000, 0.08),
        (SampleName.CENTRAL, 1, 23_979, 0.06),
    ],
)
def test_samples_have_the_means_that_they_are_tuned_to(name: SampleName, n: int, expected: int, allowed: float) -> None:
    """D. Rohr, sections 7.1, 5.1 and 9.2.2: clusters of pp events; tracks of peripheral and central ones."""
    made = TpcSample(SampleRequest(seed=11), TpcOptions(sample=name))
    events = [event_of(made, i) for i in range(n)]
    of_event = n_clusters if name is SampleName.PP else findable_particles
    counts = [of_event(event) for event in events]
    print(
        name.value, n, "events, mean", np.mean(counts), "clusters", np.mean([len(event.clusters) for event in events])
    )
    assert np.mean(counts) == pytest.approx(expected, rel=allowed)
    if name is SampleName.CENTRAL:
        assert 3.4e6 < len(events[0].clusters) < 4.6e6


def n_clusters(event: SimulatedEvent) -> int:
    return len(event.clusters)


def findable_particles(event: SimulatedEvent) -> int:
    """Particles with 30 rows of one slice and 0.15 GeV/c, other collisions included."""
    of_slice = event.particle_of * N_SLICES + event.slice_number
    key = np.unique((of_slice * N_ROWS + event.clusters["row"])[event.particle_of >= 0])
    slices, rows = np.unique(key // N_ROWS, return_counts=True)
    momentum = event.particles["momentum"]
    pt = np.hypot(momentum[:, 0], momentum[:, 1])
    particles = np.unique(slices[rows >= 30] // N_SLICES)
    return int((pt[particles] > 0.15).sum())


def test_losses_cost_the_clusters_that_they_should() -> None:
    n = 100
    crossings = placed(np.zeros(n), 3.0, np.arange(n), np.arange(n))
    assert len(found(crossings)) == n
    assert 30 < len(found(crossings, Response(efficiency=0.5, noise=0.0))) < 70
    assert len(found(crossings, charge=0.01)) == 0
    assert found(crossings).charge.min() >= MIN_CHARGE
    # Chamber 1 has rows 31 to 62.
    dead = found(crossings, Response(efficiency=1.0, noise=0.0, dead_chambers=(1,)))
    assert len(dead) == n - 32
    assert not ((dead.row >= 31) & (dead.row < 63)).any()
    edge = GEOMETRY.half_width[10] - EDGE
    assert len(found(placed([edge - 0.2, edge + 0.2], [240.0, 230.0], [0, 1]))) == 1
    assert len(found(crossings, shift=-4.0)) == 0
    assert len(found(crossings, shift=247.0)) == 0
    np.testing.assert_allclose(found(crossings, shift=200.0).drift, 203.0, atol=1.0)
    noisy = found(crossings, Response(efficiency=1.0, noise=1.0))
    assert 60 < (noisy.particle < 0).sum() < 140
    order = noisy.slice_number * N_ROWS + noisy.row
    assert (np.diff(order) >= 0).all()


def test_clusters_out_of_the_scales_of_the_bank_are_left_out() -> None:
    clusters = found(placed([0.0, 3.0], [100.0, 100.0], [0, 1]))
    assert packed(clusters)[1].all()
    beyond = replace(clusters, drift=np.array([100.0, 300.0]))
    assert packed(beyond)[1].tolist() == [True, False]
    assert packed(replace(clusters, charge=np.array([1e9, 20.4])))[0]["charge"].tolist() == [65535, 20]


def test_events_hold_the_same_bytes_in_blocks_of_any_number_of_processes() -> None:
    made = sample()
    blocks = list(made.blocks(5, 1))
    assert blocks == list(sample().blocks(5, 2))
    assert [n for n, _ in blocks] == [4, 1]
    banks = [record.banks() for _, block in blocks for record in iter_records(block)]
    counted = sum(len(bank.payload) // 8 for event in banks for bank in banks_of_clusters(event))
    assert made.description["clusters"] == counted
    assert "clusters" not in sample().description
    assert made.identity == sample().identity
    first = next(sample().events(1))
    assert [(bank.source_id, bytes(bank.payload)) for bank in first] == [
        (bank.source_id, bytes(bank.payload)) for bank in banks[0]
    ]
    assert len(event_of(sample(seed=2), 0).clusters) != len(event_of(sample(), 0).clusters)
    (mep,) = [block for _, block in sample(file_format="mep").blocks(2, 1)]
    (read,) = iter_meps(mep)
    assert [mfp.source_id for mfp in read.mfps] == [0, *(0x0800 + 48 * n for n in range(36))]


def test_truth_names_the_particle_of_each_cluster() -> None:
    event = event_of(sample(), 3)
    truth = truth_of(banks_of(event, 216))
    assert truth is not None
    np.testing.assert_array_equal(truth.of_clusters, event.particle_of)
    assert (truth.of_clusters < 0).mean() == pytest.approx(0.005, abs=0.002)
    assert set(truth.particles["origin"].tolist()) == set(map(int, Origin))
    mothers = truth.particles["mother"][truth.particles["origin"] == Origin.DECAY]
    assert np.isin(np.abs(truth.particles["pdg"][mothers]), (310, 3122)).all()
    # A delta electron begins where its mother leaves a cluster, most often.
    (deltas,) = np.nonzero(truth.particles["origin"] == Origin.DELTA)
    mothers = truth.particles["mother"][deltas]
    assert (truth.particles["origin"][mothers] != Origin.DELTA).all()
    assert (truth.particles["collision"][mothers] == truth.particles["collision"][deltas]).all()
    at_y = places_of_clusters(event.clusters)[0]
    at_x, at_y = global_from_local(event.slice_number, GEOMETRY.row_x[event.clusters["row"]], at_y)
    triggered = np.flatnonzero(truth.particles["collision"][deltas] == 0)[:40]
    distance = [
        np.hypot(at_x[own] - truth.particles["vertex"][delta, 0], at_y[own] - truth.particles["vertex"][delta, 1]).min()
        for delta, own in ((deltas[i], event.particle_of == mothers[i]) for i in triggered)
        if own.any()
    ]
    assert len(distance) > 20
    assert np.median(distance) < 0.2
    # Where a particle enters a slice, its cluster is near its true state.
    y, drift = places_of_clusters(event.clusters)
    key = (event.particle_of * 36 + event.slice_number) * N_ROWS + event.clusters["row"]
    states = truth.states
    states = states[np.abs(states["y"]) < GEOMETRY.half_width[states["row"]] - EDGE - 0.5]
    of_state = (states["particle"].astype(np.int64) * 36 + states["slice"]) * N_ROWS + states["row"]
    both, at, place = np.intersect1d(key, of_state, return_indices=True)
    assert len(both) > 0.85 * len(states)
    assert np.median(np.abs(y[at] - states["y"][place])) < 0.1
    z = drift * np.where(event.slice_number < 18, 1.0, -1.0)
    assert np.median(np.abs(z[at] - states["z"][place])) < 0.1


def test_sources_have_their_rows() -> None:
    rows = np.arange(N_ROWS)
    of = {n: source_numbers(np.full(N_ROWS, 2), rows, n) for n in (36, 216, 1728)}
    assert np.unique(of[36]).tolist() == [96]
    assert np.unique(of[216], return_counts=True)[0].tolist() == list(range(96, 144, 8))
    assert np.bincount(of[216] // 8 - 12).tolist() == [31, 32, 28, 26, 23, 19]
    assert np.unique(of[1728]).tolist() == list(range(96, 144))
    assert of[1728][:4].tolist() == [96, 96, 96, 97]
    event = event_of(sample(), 0)
    for n in (36, 216, 1728):
        banks = banks_of_clusters(banks_of(event, n))
        assert len(banks) == n
        assert b"".join(bytes(bank.payload) for bank in banks) == event.clusters.tobytes()
    with pytest.raises(ValueError, match="37 sources: 36, 216, 1728"):
        next(sample(sources=37).blocks(1, 1))
    assert [sample(sample=SampleName(name)).sources for name in ("pp", "peripheral")] == [36, 1728]


def test_a_geometry_changes_the_events_and_dead_chambers_belong_to_the_seed(tmp_path: Path) -> None:
    document = {
        "row_x": GEOMETRY.row_x.tolist(),
        "pad_width": GEOMETRY.pad_width.tolist(),
        "pad_length": GEOMETRY.pad_length.tolist(),
        "half_length": 249.7,
        "field": [-5.0, 0.0, 0.0],
    }
    (tmp_path / FILE_NAME).write_text(json.dumps(document))
    other = sample(geometry=tmp_path)
    assert other.identity != sample().identity
    assert len(event_of(other, 0).clusters) != len(event_of(sample(), 0).clusters)
    (tmp_path / FILE_NAME).write_text("[]")
    with pytest.raises(ValueError, match=FILE_NAME):
        next(sample(geometry=tmp_path).blocks(1, 1))
    dead = sample(dead_chambers=20).dead_chambers
    assert len(set(dead)) == 20
    assert dead == sample(dead_chambers=20).dead_chambers != sample(seed=2, dead_chambers=20).dead_chambers
