"""The helix and its filter: exact circles, derivatives, and variances that stay positive."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.geometry.cluster_errors import cluster_variances
from hltnode.processing.alice.tpc.tracks.constants import TRACKLET_CONSTANTS
from hltnode.processing.framework.collections import PROCESSING
from tests.processing.alice.toy_events import GEOMETRY, UNIT
from tests.processing.framework.build_cache import built, version_of
from tests.processing.framework.chain_builder import compiler

HARNESS = Path(__file__).with_name("track_model_harness.cpp")
MODEL = PROCESSING / "alice/tpc/tracks/track_model.cuh"
Y, Z, S, L, Q = range(1, 6)
VARIANCES = {"yy": 6, "ss": 8, "qq": 11, "zz": 12, "ll": 14}
C = TRACKLET_CONSTANTS
FILTER = np.array(
    [
        *(C[name] for name in ("y_constant", "y_drift", "y_angle", "z_constant", "z_drift", "z_angle")),
        *(C["max_sin_phi"], C["radiation_length"], C["mass"] ** 2),
        *GEOMETRY.as_floats()[159:163],
    ],
    np.float32,
)


@cache
def harness() -> ctypes.CDLL:
    """The track model as a library."""
    options = ["-std=c++17", "-O2", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC", f"-I{PROCESSING}"]

    def compile_harness(path: Path) -> None:
        subprocess.run([compiler(), *options, str(HARNESS), "-o", str(path)], check=True)

    parts = [version_of(compiler()), *options, HARNESS.read_text(), MODEL.read_text()]
    return ctypes.CDLL(str(built("tpc_track_model.so", parts, compile_harness)))


def pointer(values: NDArray[np.float32]) -> ctypes.c_void_p:
    return ctypes.c_void_p(values.ctypes.data)


def propagated(state: NDArray[np.float32], x: float) -> NDArray[np.float32] | None:
    """The state at x; None if it is not reached."""
    moved = state.copy()
    reached = harness().propagate_state(pointer(FILTER), pointer(moved), ctypes.c_float(x))
    return moved if reached else None


def state_of(x: float, y: float, z: float, s: float, tan_lambda: float, q: float) -> NDArray[np.float32]:
    state = np.zeros(16, np.float32)
    state[:6] = x, y, z, s, tan_lambda, q
    return state


def test_a_track_follows_an_exact_circle_in_both_directions() -> None:
    rng = np.random.default_rng(3)
    x_rows = GEOMETRY.row_x
    for q in (-6.0, -1.0, -0.1, 1e-6, 0.5, 3.0, 6.0):
        tan_lambda, s0 = rng.uniform(-1, 1), rng.uniform(-0.3, 0.3)
        k = UNIT * q
        sine = s0 + k * (x_rows - x_rows[0])
        rows = np.flatnonzero(np.abs(sine) < 0.95)
        turn = np.arcsin(sine[rows]) - np.arcsin(s0)
        arc = turn / k
        y = (np.cos(np.arcsin(s0)) - np.cos(np.arcsin(sine[rows]))) / k
        state = state_of(x_rows[0], 0.0, 100.0, s0, tan_lambda, q)
        for i, row in enumerate(rows[1:], 1):
            moved = propagated(state, x_rows[row])
            assert moved is not None
            state = moved
            scale = 1.0 + arc[i]
            assert abs(state[Y] - y[i]) < 1e-5 * scale
            assert abs(state[Z] - 100.0 - tan_lambda * arc[i]) < 1e-5 * scale
            assert abs(state[S] - sine[row]) < 1e-5
        back = propagated(state, x_rows[rows[-2]])
        assert back is not None
        assert abs(back[Y] - y[-2]) < 1e-5 * scale


def test_a_track_ends_at_its_largest_angle_and_turn() -> None:
    limit = np.float32(C["max_sin_phi"])
    assert propagated(state_of(100, 0, 50, float(limit) - 2e-3, 0.1, 1e-3), 100.75) is not None
    assert propagated(state_of(100, 0, 50, float(limit) - 1e-4, 0.1, -1.0), 100.75) is None
    assert propagated(state_of(100, 0, 50, 0.0, 0.1, 350.0), 101.5) is not None
    assert propagated(state_of(100, 0, 50, -0.95, 0.1, -400.0), 103.0) is None


def test_a_fit_starts_with_the_errors_of_a_cluster_at_the_angles_of_its_track() -> None:
    """Straight tracks through rows 110, 118 and 126: the resolution is that of their slopes."""
    rows = np.array([110, 118, 126])
    pad, x = 1.0, GEOMETRY.row_x[rows]
    for slope_y, slope_z in ((0.0, 0.0), (0.4, 0.0), (0.0, 1.5), (-0.8, -1.2)):
        y, z = slope_y * (x - x[1]), 120.0 + slope_z * (x - x[1])
        points = np.column_stack([x, y + 1e-6 * (x - x[1]) ** 2, z, np.full(3, pad)]).astype(np.float32)
        for at_first, place in ((1, 0), (0, 2)):
            state = np.zeros(16, np.float32)
            assert harness().start_track(pointer(FILTER), pointer(points), at_first, pointer(state))
            drift, *slopes = np.array([[GEOMETRY.half_length - z[place]], [slope_y], [slope_z]])
            (var_y,), (var_z,) = cluster_variances(np.array([pad]), drift, *slopes)
            assert state[VARIANCES["yy"]] == pytest.approx(var_y, rel=5e-3)
            assert state[VARIANCES["zz"]] == pytest.approx(var_z, rel=5e-3)
            chord2 = (x[2] - x[0]) ** 2 * (1 + slope_y**2)
            assert state[VARIANCES["ll"]] == pytest.approx(2 * var_z * 25 / chord2, rel=1e-2)
            assert state[VARIANCES["ss"]] == pytest.approx(16 * var_y * 25 / chord2 / (1 + slope_y**2), rel=1e-2)


def test_derivatives_are_those_of_differences() -> None:
    """Without matter; those of z by s and q are left out on purpose."""
    base = state_of(120.0, 3.0, 90.0, 0.3, 0.7, 1.5)
    dx, k = 1.5, UNIT * 1.5
    s0, s1 = 0.3, 0.3 + k * dx

    def y_of(s: float, q: float) -> float:
        curvature = UNIT * q
        return float((np.sqrt(1 - s * s) - np.sqrt(1 - (s + curvature * dx) ** 2)) / curvature)

    by_s = (y_of(s0 + 1e-5, 1.5) - y_of(s0 - 1e-5, 1.5)) / 2e-5
    by_q = (y_of(s0, 1.5 + 1e-4) - y_of(s0, 1.5 - 1e-4)) / 2e-4
    arc = (np.arcsin(s1) - np.arcsin(s0)) / k
    for name, expected in (("ss", by_s**2), ("qq", by_q**2)):
        state = base.copy()
        state[VARIANCES[name]] = 1.0
        moved = propagated(state, 121.5)
        assert moved is not None
        assert moved[VARIANCES["yy"]] == pytest.approx(expected, rel=2e-3)
    state = base.copy()
    state[VARIANCES["ll"]] = 1.0
    moved = propagated(state, 121.5)
    assert moved is not None
    assert moved[VARIANCES["zz"]] == pytest.approx(arc**2, rel=1e-4)


def wrong_fits(n: int) -> int:
    rng = np.random.default_rng(7)
    x = GEOMETRY.row_x.astype(np.float32)
    starts = np.zeros((n, 16), np.float32)
    starts[:, 0], starts[:, Y], starts[:, Z] = x[-1], rng.uniform(-40, 40, n), rng.uniform(0, 250, n)
    starts[:, S], starts[:, L] = rng.uniform(-0.9, 0.9, n), rng.uniform(-1.5, 1.5, n)
    starts[:, Q] = rng.choice([-1, 1], n) / rng.uniform(0.1, 10.0, n)
    starts[:, 6] = starts[:, 12] = 0.01
    starts[:, 8] = starts[:, 14] = 1.0
    starts[:, 11] = 400.0
    noise = rng.normal(0, 1, 1 << 16).astype(np.float32)
    found = harness().wrong_fits
    found.restype = ctypes.c_uint32
    return int(found(pointer(FILTER), pointer(x), 159, pointer(starts), pointer(noise), len(noise), n))


def test_no_fit_has_a_negative_variance() -> None:
    assert wrong_fits(5_000) == 0


@pytest.mark.slow
def test_no_fit_of_a_million_has_a_negative_variance() -> None:
    assert wrong_fits(1_000_000) == 0
