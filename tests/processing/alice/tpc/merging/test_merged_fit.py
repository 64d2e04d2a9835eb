"""The fit of merged tracks against a sequential one, and the particle that it assumes against double precision."""

from __future__ import annotations

import ctypes
import subprocess
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.tpc.collections import TRACK
from hltnode.processing.alice.tpc.merging.collections import TRACK_HIT
from hltnode.processing.alice.tpc.merging.fit.fit_merged_tracks import fit_merged_tracks
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.limits import BatchLimits
from tests.processing.alice.ionisation_oracle import CONSTANTS, ionisation, lost, particle_of, truncated_mean
from tests.processing.alice.merged_events import Merged, event_of_all_kinds, helix, slice_oracle
from tests.processing.alice.toy_events import GEOMETRY, UNIT, circle_places, clusters_at, columns_of, event_of, mep_of
from tests.processing.alice.track_oracle import Slice, State
from tests.processing.framework.build_cache import built, version_of
from tests.processing.framework.chain_builder import compiler
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms

f = np.float32
MASSES = [CONSTANTS[name] for name in ("mass", "kaon_mass", "proton_mass")]
HARNESS = Path(__file__).with_name("ionisation_harness.cpp")


@pytest.fixture(scope="module")
def event() -> Merged:
    return event_of_all_kinds()


def rotated(oracle: Slice, t: State, forwards: bool) -> bool:
    sine, cosine = f(0.34202014) if forwards else -f(0.34202014), f(0.93969262)
    c = np.sqrt(f(1) - t.s * t.s)
    turned, s = c * cosine + t.s * sine, t.s * cosine - c * sine
    if not turned > 0 or not oracle.is_within(s):
        return False
    ratio, inverse = c / turned, turned / c
    t.x, t.y, t.s = t.x * cosine + t.y * sine, t.y * cosine - t.x * sine, s
    t.yy, t.ss, t.qy, t.qs = t.yy * (ratio * ratio), t.ss * (inverse * inverse), t.qy * ratio, t.qs * inverse
    return True


def fit_in_order(
    oracle: Slice,
    t: State,
    at: int,
    hits: list[tuple[int, int, int]],
    mass: float,
    charges: NDArray[Any],
    most_charge: float = np.inf,
) -> tuple[int, int, list[float]] | None:
    """Fit through (row, place, slice); the last slice, the number of clusters and their charges per cm, or None.

    most_charge: per cm; clusters with more are left out."""
    oracle.c["mass"] = f(mass)
    loss = CONSTANTS["energy_loss"] * ionisation(float(t.q) ** 2 / (1 + float(t.l) ** 2), mass)
    of_cm: list[float] = []
    hundred, zero = f(100), f(0)
    t.yy, t.ss, t.qq, t.zz, t.ll = (each * hundred for each in (t.yy, t.ss, t.qq, t.zz, t.ll))
    t.sy = t.qy = t.qs = t.lz = t.chi2 = zero
    fitted = 0
    for row, k, number in hits:
        steps = (number % 18 - at % 18) % 18
        for _ in range(min(steps, 18 - steps)):
            if not rotated(oracle, t, steps <= 9):
                return None
        if (number < 18) != (at < 18):
            t.z, t.l = -t.z, -t.l
        at = number
        dx = oracle.row_x[row] - t.x
        if not oracle.propagate(t, oracle.row_x[row]):
            return None
        t.q = lost(t, dx, loss, mass)
        if charges[k] * np.sqrt((1 - t.s * t.s) / (1 + t.l * t.l)) / oracle.pad(row) > most_charge:
            continue
        if oracle.chi2(t, row, k) > f(25):
            continue
        oracle.update(t, row, k)
        if not oracle.is_within(t.s):
            return None
        fitted += 1
        of_cm.append(float(charges[k] * np.sqrt((1 - t.s * t.s) / (1 + t.l * t.l)) / oracle.pad(row)))
    return at, fitted, of_cm


def test_merged_tracks_have_the_parameters_of_a_sequential_fit(event: Merged) -> None:
    assert event.charges is not None
    n_failed, n_overlapping, particles = 0, 0, []
    rows = zip(event.merged, event.segments, event.run, event.particle, event.ionisation, strict=True)
    for record, segments, run, particle, measured in rows:
        own = segments[:run]
        clusters = [event.clusters(i) for i in own]
        flat = np.concatenate(clusters)
        oracle = slice_oracle(event.places[flat])
        offset = np.cumsum([0, *map(len, clusters)])
        hits = [
            (int(event.cluster_rows[c]), k, offset[k] + j, int(event.tracks["slice"][i]), int(c))
            for k, i in enumerate(own)
            for j, c in enumerate(clusters[k])
        ]
        hits.sort(key=lambda hit: (hit[0], hit[1], hit[2]))
        ordered: list[tuple[int, int, int]] = []
        taken: set[int] = set()
        for row, _, place, number, cluster in hits:
            if cluster not in taken:
                ordered.append((row, int(place), number))
            taken.add(cluster)
        start = event.tracks[min(own, key=lambda i: (event.rows[i][0], own.index(i)))]
        side = 1.0 if start["slice"] < 18 else -1.0
        names = [*"xyz", "sin_phi", "tan_lambda", "q_pt", "c_yy", "c_zz", "c_sy", "c_ss", "c_lz", "c_ll"]
        names += ["c_qy", "c_qs", "c_qq", "chi2"]
        t = State(*(start[name] for name in names))
        t.z, t.l = t.z * f(side), t.l * f(side)
        of_clusters = event.charges[flat].astype(f)
        slice_of = int(start["slice"])
        first = fit_in_order(oracle, t, slice_of, ordered, MASSES[0], of_clusters)
        done = None
        if first is not None:
            mean = truncated_mean(first[2], CONSTANTS["kept_charges"])
            expected_ionisation = mean / CONSTANTS["mip_charge"]
            assert measured == pytest.approx(expected_ionisation, rel=1e-4)
            over_p2 = float(t.q) ** 2 / (1 + float(t.l) ** 2)
            chosen = particle_of(expected_ionisation, over_p2) if first[1] >= CONSTANTS["min_charges"] else 0
            most = CONSTANTS["max_charge"] * mean
            outermost = copy(t)
            done = fit_in_order(oracle, t, first[0], ordered[::-1], MASSES[chosen], of_clusters, most)
            if done is None or 2 * done[1] < first[1]:
                t = outermost
                done = fit_in_order(oracle, t, first[0], ordered[::-1], MASSES[chosen], of_clusters)
            n_overlapping += done is not None and done[1] < first[1]
            particles.append(chosen if done else 0)
            assert particle == particles[-1]
        if done is None:
            n_failed += 1
            assert record["n_fitted"] == 0
            assert [record[name] for name in names] == [start[name] for name in names]
            assert record["slice"] == start["slice"]
        else:
            turned = f(1.0 if done[0] < 18 else -1.0)
            expected: tuple[Any, ...] = (t.x, t.y, turned * t.z, t.s, turned * t.l, t.q)
            expected += (t.yy, t.zz, t.sy, t.ss, t.lz, t.ll, t.qy, t.qs, t.qq, t.chi2)
            found = np.array([record[name] for name in names], np.float32)
            # The change of momentum has no roundings in common with the oracle.
            np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-4, atol=2e-6)
            assert (record["slice"], record["n_fitted"]) == done[:2]
        every = np.unique(np.concatenate([event.clusters(i) for i in segments]))
        assert record["n_clusters"] == len(every)
        assert record["charge"] == sum(int(event.tracks["charge"][i]) for i in segments)
        for i in segments:
            assert event.tracks["charge"][i] == event.charges[event.clusters(i)].astype(int).sum()
    assert n_failed <= 2
    assert n_overlapping > 0.5 * len(event.merged)
    assert np.bincount(particles, minlength=3).min() >= 1


@cache
def harness() -> ctypes.CDLL:
    """The functions of ionisation.cuh as a library."""
    options = ["-std=c++17", "-O2", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC", f"-I{PROCESSING}"]

    def compile_harness(path: Path) -> None:
        subprocess.run([compiler(), *options, str(HARNESS), "-o", str(path)], check=True)

    sources = (HARNESS, PROCESSING / "alice/tpc/merging/fit/ionisation.cuh", PROCESSING / "framework/device/math.cuh")
    parts = [version_of(compiler()), *options, *(each.read_text() for each in sources)]
    library = ctypes.CDLL(str(built("tpc_ionisation.so", parts, compile_harness)))
    library.lowest_of.restype = library.ionisation.restype = ctypes.c_float
    library.lost_momentum.restype = ctypes.c_float
    return library


def lowest_of(charges: NDArray[np.floating], share: float) -> float:
    given = np.ascontiguousarray(charges, np.float32)
    return float(harness().lowest_of(ctypes.c_void_p(given.ctypes.data), len(given), ctypes.c_float(share)))


def chosen(measured: float, over_p2: float, separation: float) -> int:
    squares = np.square(np.array(MASSES)).astype(np.float32)
    numbers = (ctypes.c_float(each) for each in (measured, over_p2, separation))
    return int(harness().particle(ctypes.c_void_p(squares.ctypes.data), *numbers))


def test_the_truncated_mean_is_that_of_double_precision() -> None:
    rng = np.random.default_rng(11)
    assert lowest_of(np.empty(0), 0.65) == 0.0
    assert lowest_of(np.array([80.0, 90.0]), 0.0) == 0.0
    for n in (1, 2, 3, 20, 159, 900):
        charges = (80.0 * (1.0 - 0.12 * np.log(rng.standard_normal(n) ** 2))).astype(np.float32)
        for share in (0.3, 0.65, 1.0):
            assert lowest_of(charges, share) == pytest.approx(truncated_mean(charges.tolist(), share), rel=1e-5)
        # Nearly the mean of the sorted list.
        kept = np.sort(charges)[: max(1, round(0.65 * n))]
        assert lowest_of(charges, len(kept) / n) == pytest.approx(kept.mean(), rel=0.02 if n > 3 else 0.1)


def test_charges_beyond_all_bins_count_in_the_first_and_the_last_one() -> None:
    assert lowest_of(np.array([0.0, 3.0, 15.9]), 1.0) == pytest.approx(6.3)
    assert lowest_of(np.array([1023.0, 70000.0, 1e9]), 1.0) == pytest.approx(1e9 / 3, rel=1e-3)
    # 17.9 is in the first bin, and 18 in the second one.
    assert lowest_of(np.array([10.0, 17.9, 18.0, 18.0]), 0.5) == pytest.approx(13.95)
    assert lowest_of(np.array([10.0, 17.9, 18.0, 18.0]), 0.25) == pytest.approx(13.95)


def test_the_particle_is_that_of_the_bands_and_ambiguous_ones_are_lighter() -> None:
    rng = np.random.default_rng(12)
    counts = np.zeros(3, int)
    for p in (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 3.0, 10.0):
        bands = np.array([ionisation(1 / p**2, mass) for mass in MASSES])
        edges = np.sqrt(bands[1:] * bands[:-1])
        for measured in [*rng.uniform(0.5, 1.5, 40) * rng.choice(bands, 40), *(edges * 1.001), *(edges * 0.999)]:
            expected = particle_of(measured, 1 / p**2)
            assert chosen(measured, 1 / p**2, CONSTANTS["separation"]) == expected
            counts[expected] += 1
    assert counts.min() > 20
    # Kaons of 0.5 GeV/c are 1.63 times as ionising as pions, protons 1.99 times as kaons.
    high = 100.0
    assert [chosen(high, 4.0, separation) for separation in (1.5, 1.9, 2.1)] == [2, 2, 0]
    assert [chosen(1.5, 4.0, separation) for separation in (1.5, 1.7)] == [1, 0]


def test_ionisation_and_lost_momentum_are_those_of_double_precision() -> None:
    for p in (0.05, 0.15, 0.4, 1.0, 20.0):
        for mass in MASSES:
            given = (ctypes.c_float(1 / p**2), ctypes.c_float(mass**2))
            assert harness().ionisation(*given) == pytest.approx(ionisation(1 / p**2, mass), rel=2e-6)
    for q, s, slope, dx in ((3.0, 0.2, 0.4, 1.0), (-3.0, -0.6, -0.9, -1.5), (0.1, 0.0, 0.0, 1.0)):
        t = State(*(f(each) for each in (0, 0, 0, s, slope, q, 0, 0)))
        for loss in (1.6e-6, 1e-4, 0.5):
            arguments = tuple(ctypes.c_float(each) for each in (q, s, slope, dx, loss, MASSES[2] ** 2))
            assert harness().lost_momentum(*arguments) == pytest.approx(float(lost(t, dx, loss, MASSES[2])), rel=1e-6)
    assert abs(float(lost(t, 1.0, 10.0, MASSES[2])) / 0.1 - 1.1) < 1e-6


def test_the_charge_of_a_track_decides_its_particle_and_the_width_of_its_errors() -> None:
    """One helix of 0.4 GeV/c, with the charge of each particle, and with too few clusters of it."""
    q, tan_lambda = 2.5, 0.3
    over_p2 = q**2 / (1 + tan_lambda**2)
    variances = []
    for particle, mass in enumerate(MASSES):
        given = helix(q, 1.0, tan_lambda, 3.0)
        for clusters in given.values():
            pads = np.where(clusters["row"] < 63, 0.75, np.where(clusters["row"] < 127, 1.0, 1.5))
            # The tracks turn by 0.3 rad, so the angle to the rows changes their way by a few per cent.
            clusters["charge"] = np.rint(80.0 * ionisation(over_p2, mass) * pads * np.sqrt(1 + tan_lambda**2) * 1.03)
        found = Merged(columns_of(mep_of([event_of(given)])))
        (record,) = found.merged
        assert found.particle.tolist() == [particle]
        assert found.ionisation[0] == pytest.approx(ionisation(over_p2, mass), rel=0.08)
        variances.append(float(record["c_qq"]))
        toml = f"[sequence.tpc_fit_merged_tracks]\nmin_charges = {int(record['n_fitted'])}\n"
        at_bound = Merged(columns_of(mep_of([event_of(given)]), toml))
        assert at_bound.particle.tolist() == [particle]
        too_few = Merged(
            columns_of(mep_of([event_of(given)]), toml.replace(str(record["n_fitted"]), str(record["n_fitted"] + 1)))
        )
        assert too_few.particle.tolist() == [0]
    assert variances[0] < 0.8 * variances[1] < 0.64 * variances[2]


def test_without_kept_charges_every_track_is_a_pion_and_keeps_its_clusters() -> None:
    given = helix(2.5, 1.0, 0.3, 3.0)
    for clusters in given.values():
        clusters["charge"][::3] *= 4
    found = Merged(columns_of(mep_of([event_of(given)]), "[sequence.tpc_fit_merged_tracks]\nkept_charges = 0.0\n"))
    (record,) = found.merged
    assert found.ionisation.tolist() == [0.0]
    assert found.particle.tolist() == [0]
    assert record["n_fitted"] == record["n_clusters"]


def test_clusters_with_the_charge_of_two_particles_do_not_pull_the_fit() -> None:
    """Every fifth cluster lies 0.15 cm beside the helix, with a charge just above and just below the limit."""
    q, middle, beside = 0.3, np.radians(10.0), round(0.15 / 0.0015)
    found = {}
    for share in (0.93, 1.06):
        given = helix(q, middle, 0.3, 3.0)
        (clusters,) = given.values()
        pads = np.where(clusters["row"] < 63, 0.75, np.where(clusters["row"] < 127, 1.0, 1.5))
        overlaps = clusters["row"] % 5 == 2
        clusters["y"][overlaps] += np.uint16(beside)
        clusters["charge"] = np.rint(200.0 * pads * np.where(overlaps, share * CONSTANTS["max_charge"], 1.0))
        merged = Merged(columns_of(mep_of([event_of(given)]), "[sequence.tpc_fit_merged_tracks]\nenergy_loss = 0.0\n"))
        (record,) = merged.merged
        assert record["n_clusters"] == len(clusters)
        assert record["n_fitted"] == len(clusters) - (overlaps.sum() if share > 1 else 0)
        found[share > 1] = record
    true_y = float(circle_places(q, 0.0, 0.3, 3.0)[1][0])
    assert abs(float(found[True]["y"]) - true_y) < 0.003
    assert float(found[False]["y"]) - true_y > 0.01


def test_clusters_with_large_charges_stay_if_fewer_than_half_are_left() -> None:
    for share, left_out in ((0.47, True), (0.53, False)):
        given = helix(0.3, np.radians(10.0), 0.3, 3.0)
        (clusters,) = given.values()
        pads = np.where(clusters["row"] < 63, 0.75, np.where(clusters["row"] < 127, 1.0, 1.5))
        n_large = round(share * len(clusters))
        large = np.argsort(clusters["row"] * 71 % 159) < n_large
        clusters["charge"] = np.rint(100.0 * pads * np.where(large, 5.0, 1.0))
        (record,) = Merged(columns_of(mep_of([event_of(given)]))).merged
        assert record["n_fitted"] == len(clusters) - (n_large if left_out else 0)


def test_a_cluster_that_segments_share_enters_the_fit_once() -> None:
    """In rows 30 to 50, the cluster of a second segment lies between the two places of a shared one in the order."""
    q = 0.5
    rows, y, z = circle_places(q, 0.0, 0.3, 2.0)
    clusters = clusters_at(rows, y, z)
    of_segments = [np.arange(61), 200 + np.arange(20, 51), np.arange(30, 101)]
    numbers = np.concatenate(of_segments)
    n = np.array([len(each) for each in of_segments])
    of_rows = clusters[numbers % 200]
    hits = np.zeros(len(numbers), TRACK_HIT.dtype)
    hits["place"] = of_rows["z"].astype(np.uint32) << 16 | of_rows["y"]
    hits["charge"], hits["row"] = 100, of_rows["row"]
    tracks = np.zeros(3, TRACK.dtype)
    begins = np.array([of_segments[0][0], 20, 30])
    tracks["x"], tracks["y"], tracks["z"] = GEOMETRY.row_x[rows[begins]], y[begins], z[begins]
    tracks["sin_phi"], tracks["tan_lambda"], tracks["q_pt"] = UNIT * q * tracks["x"], 0.3, q
    for name in ("c_yy", "c_zz", "c_ss", "c_ll", "c_qq"):
        tracks[name] = 1e-4
    tracks["n_clusters"] = n
    given = {
        "tpc.geometry": GEOMETRY.as_floats(),
        "tpc_tracks.track": tracks,
        "tpc_tracks.first_hit": np.cumsum(n) - n,
        "tpc_track_clusters.cluster": numbers,
        "tpc_track_clusters.hit": hits,
        "tpc_merged_tracks.count": np.array([1]),
        "tpc_merged_tracks.size": np.array([3]),
        "tpc_merged_tracks.run": np.array([3]),
        "tpc_merged_segments.segment": np.arange(3),
    }
    limits = BatchLimits(events=1, input_bytes=1 << 16)
    found = run_algorithms([fit_merged_tracks], given, 1, limits, on_cpu(kernels=CHAIN.kernels))
    record = found["tpc_merged_tracks.track"][0]
    assert record["n_clusters"] == record["n_fitted"] == len(np.unique(numbers))
    assert len(numbers) - len(np.unique(numbers)) == 31


def test_all_clusters_are_taken_again_where_rounding_makes_a_variance_negative() -> None:
    """Two clusters of large charge inside, two others near each other outside; the slope along z is hardly known.

    Half of the clusters are left without the large charges, as many as the other rule asks for.
    """
    n_tracks, q = 40, 0.5
    rows, y, z = circle_places(q, 0.0, 0.3, 2.0)
    numbers = np.array([3, 63, 136, 141])
    places = clusters_at(rows, y, z)[numbers]
    n = len(numbers)
    hits = np.zeros((n_tracks, n), TRACK_HIT.dtype)
    hits["place"] = places["z"].astype(np.uint32) << 16 | places["y"]
    hits["row"], hits["charge"] = places["row"], [375, 500, 150, 150]
    tracks = np.zeros(n_tracks, TRACK.dtype)
    tracks["x"], tracks["y"], tracks["z"] = GEOMETRY.row_x[rows[3]], y[3], z[3]
    tracks["sin_phi"], tracks["tan_lambda"], tracks["q_pt"] = UNIT * q * tracks["x"], 0.3, q
    width = 10.0 ** np.random.default_rng(1).uniform(-0.3, 0.3, (5, n_tracks))
    for name, variance, of_tracks in zip(
        ("c_yy", "c_zz", "c_ss", "c_ll", "c_qq"), (13.0, 0.054, 2700.0, 1.8e6, 1.8e8), width, strict=True
    ):
        tracks[name] = variance * of_tracks
    tracks["n_clusters"] = n
    given = {
        "tpc.geometry": GEOMETRY.as_floats(),
        "tpc_tracks.track": tracks,
        "tpc_tracks.first_hit": np.arange(n_tracks) * n,
        "tpc_track_clusters.cluster": np.arange(n_tracks * n),
        "tpc_track_clusters.hit": hits.ravel(),
        "tpc_merged_tracks.count": np.array([n_tracks]),
        "tpc_merged_tracks.size": np.ones(n_tracks, int),
        "tpc_merged_tracks.run": np.ones(n_tracks, int),
        "tpc_merged_tracks.first_segment": np.arange(n_tracks),
        "tpc_merged_segments.segment": np.arange(n_tracks),
    }
    limits = BatchLimits(events=1, input_bytes=1 << 20)
    found = run_algorithms([fit_merged_tracks], given, 1, limits, on_cpu(kernels=CHAIN.kernels))
    of_all = found["tpc_merged_tracks.track"][:n_tracks]
    assert set(of_all["n_fitted"].tolist()) == {2, 4}
    assert np.count_nonzero(of_all["n_fitted"] == 4) > n_tracks // 2
    for name in ("c_ss", "c_ll", "c_qq"):
        assert (of_all[name][of_all["n_fitted"] == 2] > 0.0).all(), name
