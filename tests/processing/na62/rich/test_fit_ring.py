"""rich_fit_ring: the fits of one circle, against float64, against circle-fit, and both forms of the kernel."""

from __future__ import annotations

import circle_fit
import numpy as np
import pytest

from hltnode.processing.na62.rich.collections import Fit
from hltnode.processing.na62.rich.fit_ring import RESOLUTION
from hltnode.processing.na62.rich.pmt_positions import N_PMTS
from hltnode.protocol.na62.rich_banks import HIT, encode_hits
from tests.processing.na62.rich_events import RichResult, mep_of_payloads, run_chain, simulated
from tests.processing.na62.ring_oracle import algebraic_fit, taubin_by_newton

# circle-fit has no linear least squares: its standardLSQ minimises distances.
PEERS = {
    Fit.FIT_TAUBIN: circle_fit.taubinSVD,
    Fit.FIT_PRATT: circle_fit.prattSVD,
}


def fit_places(places: list[np.ndarray], method: Fit) -> RichResult:
    """The fit of events of any points: tube i has the place i of all points."""
    table = np.zeros((N_PMTS, 2), np.float32)
    every = np.concatenate(places)
    table[: len(every)] = every
    ends = np.cumsum([len(points) for points in places])
    events = [
        np.array([(i, 0) for i in range(end - len(points), end)], HIT) for end, points in zip(ends, places, strict=True)
    ]
    mep = mep_of_payloads([encode_hits(hits) for hits in events])
    constants = {"rich.pmt_position": table.reshape(-1).view(np.uint8)}
    return run_chain(mep, configuration(method), constants)


def configuration(method: Fit) -> str:
    return f'[sequence]\nname = "single_ring"\n[sequence.rich_fit_ring]\nmethod = {int(method)}\n'


def circles(n: int, smearing: float) -> list[np.ndarray]:
    """Points around circles of any centre; from whole circles to thirds."""
    rng = np.random.default_rng(12)
    made = []
    for i in range(n):
        angle = rng.uniform(0, 2 * np.pi / (1 + i % 3), 8 + i % 50)
        radius = rng.uniform(60, 200) + smearing * rng.normal(size=len(angle))
        centre = rng.uniform(-120, 120, 2)
        made.append((centre + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])).astype(np.float32))
    return made


@pytest.mark.parametrize("method", Fit)
def test_the_fits_agree_with_float64_and_with_circle_fit(method: Fit) -> None:
    points = circles(50, 4.0)
    found = fit_places(points, method)
    for i, each in enumerate(points):
        (ring,) = found.rings[i]
        x, y = each.astype(np.float64).T
        expected = np.array(algebraic_fit(x, y, int(method)))
        got = np.array([ring["x"], ring["y"], ring["radius"]])
        np.testing.assert_allclose(got, expected, atol=1e-5 * expected[2])
        squares = (np.hypot(x - expected[0], y - expected[1]) - expected[2]) ** 2
        np.testing.assert_allclose(ring["chi2"], squares.sum() / RESOLUTION**2, rtol=2e-4)
        assert ring["hits"] == len(each)
        if method in PEERS:
            peer = np.array(PEERS[method](np.column_stack([x, y]))[:3])
            np.testing.assert_allclose(got, peer, atol=1e-5 * expected[2])


@pytest.mark.parametrize("method", Fit)
def test_points_on_a_circle_give_it_in_any_order(method: Fit) -> None:
    points = circles(30, 0.0)
    rng = np.random.default_rng(3)
    one, other = (fit_places(each, method) for each in (points, [rng.permutation(p) for p in points]))
    for first, second, each in zip(one.rings, other.rings, points, strict=True):
        hits_x, hits_y = each.astype(np.float64).T
        x, y, radius = algebraic_fit(hits_x, hits_y, 0)
        for ring in (first[0], second[0]):
            got = [ring["x"], ring["y"], ring["radius"]]
            np.testing.assert_allclose(got, [x, y, radius], atol=1e-5 * radius)
            assert ring["chi2"] < 1e-4


def test_points_that_are_no_circle_have_a_flag_and_no_ring() -> None:
    line = np.column_stack([np.linspace(-200, 200, 20), np.linspace(-50, 130, 20)])
    cases = [
        np.zeros((0, 2)),
        np.array([[10.0, 20.0], [30.0, 20.0]]),
        np.full((6, 2), 123.0),
        line,
        np.repeat([[0.0, 5.0], [100.0, 80.0]], 4, axis=0),
        np.array([[-50.0, 0.0], [50.0, 0.0], [0.0, 50.0]]),
    ]
    found = fit_places(cases, Fit.FIT_TAUBIN)
    assert found.flags == [["NO_CIRCLE"]] * 5 + [[]]
    assert [len(rings) for rings in found.rings] == [0] * 5 + [1]
    (ring,) = found.rings[-1]
    np.testing.assert_allclose([ring["x"], ring["y"], ring["radius"]], [0, 0, 50], atol=1e-3)


def test_an_event_without_ring_changes_no_other_event_of_its_vector() -> None:
    events = [encode_hits(hits) for hits in simulated(5, 21)]
    alone = run_chain(mep_of_payloads(events), configuration(Fit.FIT_TAUBIN))
    mixed: list[bytes | None] = [each for payload in events for each in (payload, None, b"\x40")]
    beside = run_chain(mep_of_payloads(mixed), configuration(Fit.FIT_TAUBIN))
    for i in range(len(events)):
        np.testing.assert_array_equal(alone.rings[i], beside.rings[3 * i])
    assert all("NO_CIRCLE" in beside.flags[i] for i in range(len(mixed)) if i % 3)


def test_a_blob_of_hits_has_no_ring_unless_the_fit_converges() -> None:
    rng = np.random.default_rng(4)
    blobs = [rng.normal(scale=60.0, size=(20, 2)).astype(np.float32) for _ in range(80)]
    found = fit_places(blobs, Fit.FIT_TAUBIN)
    refused = 0
    for points, rings, flags in zip(blobs, found.rings, found.flags, strict=True):
        circle, below_greatest_step, determinant = taubin_by_newton(*points.astype(np.float64).T)
        if abs(below_greatest_step) < 1e-6:
            continue
        if below_greatest_step < 0 or determinant < 1e-6:
            refused += 1
            assert (len(rings), flags) == (0, ["NO_CIRCLE"])
        else:
            np.testing.assert_allclose([float(rings[0][name]) for name in ("x", "y", "radius")], circle, rtol=1e-2)
    assert 5 < refused < 40
