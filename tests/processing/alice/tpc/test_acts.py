"""Clusters and fits of ACTS, an independent tracking library, against those of the chain."""

from __future__ import annotations

import ctypes
import subprocess
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import least_squares

from hltnode.processing.alice.tpc.tracks.constants import TRACKLET_CONSTANTS
from hltnode.processing.alice.tpc.tracks.select_tracks import select_tracks
from hltnode.processing.framework.collections import PROCESSING
from hltnode.protocol.alice.tpc_banks import N_ROWS, places_of_clusters
from tests.processing.alice.acts_sample import SIGMA, ActsSample, Floats, acts_sample, effective_radiation_length
from tests.processing.alice.toy_events import GEOMETRY, UNIT, clusters_at, event_of, mep_of, run_chain
from tests.processing.framework.build_cache import built, version_of
from tests.processing.framework.chain_builder import compiler

HARNESS = Path(__file__).with_name("fit_harness.cpp")
SOURCES = [*sorted((PROCESSING / "alice/tpc").rglob("*.cuh")), *sorted((PROCESSING / "alice/tpc").rglob("*.h"))]
NO_MATTER = 1e12
"""A radiation length in cm without scattering."""
N_TRACKS = 60
CONSTANTS = f"y_constant = {SIGMA**2}\nz_constant = {SIGMA**2}\n" + "".join(
    f"{name} = 0.0\n" for name in ("y_drift", "y_angle", "z_drift", "z_angle")
)
SHARING = ("tpc_construct_tracklets", "tpc_select_tracks", "tpc_describe_segments", "tpc_fit_merged_tracks")
TOML = "".join(f"[sequence.{name}]\n{CONSTANTS}" for name in SHARING)
"""The errors of this sample are the same for all clusters."""


@pytest.fixture(scope="module")
def no_matter(tmp_path_factory: pytest.TempPathFactory) -> ActsSample:
    return acts_sample(tmp_path_factory.mktemp("acts"), N_TRACKS, 5, matter=False)


@pytest.fixture(scope="module")
def matter(tmp_path_factory: pytest.TempPathFactory) -> ActsSample:
    return acts_sample(tmp_path_factory.mktemp("acts"), N_TRACKS, 5, matter=True)


@cache
def harness() -> ctypes.CDLL:
    """The fit of the selection as a library."""
    options = ["-std=c++17", "-O2", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC", f"-I{PROCESSING}"]

    def compile_harness(path: Path) -> None:
        subprocess.run([compiler(), *options, str(HARNESS), "-o", str(path)], check=True)

    parts = [version_of(compiler()), *options, HARNESS.read_text(), *(each.read_text() for each in SOURCES)]
    return ctypes.CDLL(str(built("tpc_fit.so", parts, compile_harness)))


def clusters_of(sample: ActsSample) -> list[NDArray[np.void]]:
    """The clusters of each track."""
    return [clusters_at(np.arange(N_ROWS), *track.T) for track in sample.places]


def fits(sample: ActsSample, radiation_length: float, twice: bool) -> tuple[Floats, Floats, float]:
    """Parameters (y, z, s, l, q) of the tracks of a sample, their standard deviations, and processor time in s."""
    clusters = np.stack(clusters_of(sample))
    places = clusters["z"].astype(np.uint32) << 16 | clusters["y"]
    field = (GEOMETRY.half_length, GEOMETRY.field.b0, 0.0, 0.0)
    mass = TRACKLET_CONSTANTS["mass"]
    errors = (SIGMA**2, 0.0, 0.0, SIGMA**2, 0.0, 0.0)
    model = np.array([*errors, TRACKLET_CONSTANTS["max_sin_phi"], radiation_length, mass**2, *field], np.float32)
    x, pads = GEOMETRY.row_x.astype(np.float32), GEOMETRY.pad_length.astype(np.float32)
    states = np.zeros((len(places), 16), np.float32)
    (limit,) = (each.value for each in select_tracks.constants if each.name == "max_fit_chi2")
    arrays = (ctypes.c_void_p(each.ctypes.data) for each in (model, x, pads, places))
    before = time.process_time()
    n = harness().fit_given_tracks(
        *arrays, len(places), ctypes.c_float(limit), int(twice), ctypes.c_void_p(states.ctypes.data)
    )
    seconds = time.process_time() - before
    assert n == len(places)
    return states[:, 1:6].astype(float), np.sqrt(states[:, [6, 12, 8, 14, 11]].astype(float)), seconds


def exact_fit(places: Floats, start: Floats, scale: Floats) -> Floats:
    """Least squares of a helix in double precision."""
    dx = GEOMETRY.row_x - GEOMETRY.row_x[0]

    def residuals(p: Floats) -> Floats:
        s = p[2] + UNIT * p[4] * dx
        y = p[0] + dx * (p[2] + s) / (np.sqrt(1 - p[2] ** 2) + np.sqrt(1 - s**2))
        z = p[1] + p[3] * (np.arcsin(s) - np.arcsin(p[2])) / (UNIT * p[4])
        return np.concatenate([y - places[:, 0], z - places[:, 1]]) / SIGMA

    found: Floats = least_squares(residuals, start, x_scale=scale).x
    return found


def sigmas(sample: ActsSample) -> Floats:
    found: Floats = np.sqrt(np.einsum("tii->ti", sample.covariance))
    return found


def test_tracks_of_acts_have_all_rows_and_the_chi2_of_their_errors(no_matter: ActsSample, matter: ActsSample) -> None:
    for sample in (no_matter, matter):
        assert sample.lost == 0
        assert len(sample.places) == N_TRACKS
        assert 0.9 <= sample.chi2_ndf.mean() <= 1.05


def test_a_second_fit_agrees_with_acts_in_parameters_and_errors(no_matter: ActsSample, matter: ActsSample) -> None:
    for sample, length in ((no_matter, NO_MATTER), (matter, effective_radiation_length())):
        found, sigma, _ = fits(sample, length, True)
        difference = np.abs(found - sample.parameters) / sigmas(sample)
        assert (np.quantile(difference, 0.9, axis=0) < 0.1).all()
        assert difference.max() < 0.2
        ratio = sigma / sigmas(sample)
        # z has no derivative by sin phi here, so its error knows nothing of scattering in the bending plane.
        slope = 0.15 if sample is matter else 0.05
        assert (np.abs(ratio - 1) < [0.05, 0.05, 0.07, slope, 0.05]).all()
        assert (np.abs(np.median(ratio, axis=0) - 1) < 0.05).all()


def test_one_fit_is_near_the_exact_helix_and_acts_at_it(no_matter: ActsSample) -> None:
    """The differences of both are those of the one fit: its first steps use parameters that are not known yet."""
    found, sigma, _ = fits(no_matter, NO_MATTER, False)
    exact = np.array([exact_fit(*each) for each in zip(no_matter.places, found, sigma, strict=True)])
    of_acts, of_one = (np.abs(each - exact) / sigma for each in (no_matter.parameters, found))
    assert (np.quantile(of_acts, 0.9, axis=0) < [0.02, 0.15, 0.02, 0.03, 0.02]).all()
    assert (np.quantile(of_one, 0.9, axis=0) < [0.06, 0.25, 0.08, 0.5, 0.1]).all()
    assert of_one.max() < 1.0
    assert (np.abs(sigma / sigmas(no_matter) - 1) < 0.05).all()


def test_two_fits_take_a_fifth_of_the_processor_time_of_acts(no_matter: ActsSample) -> None:
    seconds = min(fits(no_matter, NO_MATTER, True)[2] for _ in range(3))
    assert no_matter.seconds > 5 * seconds
    print(f"us a track: ACTS {1e6 * no_matter.seconds / N_TRACKS:.0f}, here {1e6 * seconds / N_TRACKS:.1f}")


def test_the_chain_finds_the_tracks_of_acts_in_one_slice(matter: ActsSample) -> None:
    tracks = clusters_of(matter)
    clusters, of_track = np.concatenate(tracks), np.repeat(np.arange(N_TRACKS), N_ROWS)
    (found,) = run_chain(mep_of([event_of({3: clusters}, 2)]), TOML)
    y, z = places_of_clusters(clusters)
    assert np.abs(y - matter.places[..., 0].ravel()).max() < 0.001
    assert np.abs(z - matter.places[..., 1].ravel()).max() < 0.003
    efficient, pulls = 0, []
    for record, hits in zip(found.tracks, found.clusters_of_tracks(), strict=True):
        counts = np.bincount(of_track[hits], minlength=N_TRACKS)
        if counts.max() >= 0.9 * len(hits) and len(hits) >= 0.9 * N_ROWS:
            efficient += 1
            truth = matter.parameters[counts.argmax()]
            pulls.append((record["q_pt"] - truth[4]) / np.sqrt(record["c_qq"]))
    assert efficient >= 0.95 * N_TRACKS
    # Both fits have the same clusters but some: far nearer than the error of either.
    assert np.quantile(np.abs(pulls), 0.9) < 0.5
