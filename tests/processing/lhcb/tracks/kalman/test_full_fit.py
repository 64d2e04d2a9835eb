"""The fit of long tracks through all detectors: agreement of the low-rank filter in single precision with matrices in
double precision, pulls, and momenta of the real events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation.filter_noise import Step
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.parametrisation.tracks import Line
from hltnode.processing.lhcb.scifi.collections import NO_HIT
from hltnode.processing.lhcb.tracks.kalman.collections import long_end_state
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.tracks.long.parameters import LONG_TRACK_PARAMETERS, record_of
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.raw_data.mdf import iter_records
from tests.processing.lhcb.fit_chain import FULL, run
from tests.processing.lhcb.given_columns import real_tracks
from tests.processing.lhcb.tracks.kalman.full_fit_oracle import (
    ENERGY_LOSS_ERROR,
    LAYER_SLOPE,
    MOMENTUM_ERROR,
    SCIFI_OBLIQUE_VARIANCE,
    SCIFI_VARIANCE,
    UT_LEVER_ERROR,
    Z_END,
    Z_REFERENCE,
    Z_VELO,
    FullFit,
    Hit,
    Levers,
    Plane,
    fit_through_detectors,
    of_layer,
    of_step,
    scattering_of,
)
from tests.processing.lhcb.tracks.kalman.toy_tracks import FIELD, scattered
from tests.processing.lhcb.tracks.kalman.velo_fit_oracle import FOIL, HIT_VARIANCE, MODULE, behind_foil
from tests.processing.lhcb.velo.track_sample import TrackSample

PARAMETERS = LongTrackParameters.builtin()
RECORD = np.frombuffer(record_of(PARAMETERS, SciFiGeometry.builtin()), LONG_TRACK_PARAMETERS.dtype)[0]
N_LAYERS, N_UT_LAYERS = 12, 4
UT_VARIANCE = 0.055**2
PLANES = [Plane(float(z), float(dz_dy)) for z, dz_dy in zip(RECORD["layer_z"], RECORD["layer_dz_dy"], strict=True)]
UT_PLANES = [Plane(float(z)) for z in RECORD["ut_z"]]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LongTrack:
    """VELO hits [n, (x, y, z)] from large to small z, true q/p at the origin, reconstructed slope at z = 9410 mm, UT
    and SciFi hits; the true state (x, y, tx, ty) at z = 9410 mm."""

    velo: FloatArray
    qop: float
    tx_end: float
    ut: list[Hit | None]
    scifi: list[Hit | None]
    end: FloatArray


class Scatters:
    """Deviation of a track from one that does not scatter: [x or y][position, slope]."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.off = np.zeros((2, 2))

    def step(self, dz: float, noise: FloatArray) -> None:
        self.off[:, 0] += self.off[:, 1] * dz
        self.off += self._rng.normal(size=(2, 2)) @ np.linalg.cholesky(noise + 1e-18 * np.eye(2)).T


def velo_part(rng: np.random.Generator, slopes: FloatArray, qop: float) -> tuple[FloatArray, FloatArray]:
    """Hits of a track that scatters as the fit assumes, and its true state at Z_VELO."""
    z = np.arange(5.5 / np.hypot(*slopes) + rng.uniform(-50.0, 50.0), 750.0, 25.0)[:12]
    position, slope = slopes * z[0], slopes
    points = [position]
    for before, here in pairwise(z):
        foil = FOIL if behind_foil(*(position + slope * (here - before))) else 0.0
        position, slope = scattered(rng, position, slope, here - before, qop, MODULE + foil, 0.643, 0.526)
        points.append(position)
    position, slope = scattered(rng, position, slope, Z_VELO - float(z[-1]), qop, MODULE, 1.0, 1.0)
    hits = np.column_stack([np.array(points) + rng.normal(0.0, np.sqrt(HIT_VARIANCE), (len(z), 2)), z])
    hits[:, 0] += qop * FIELD.position(z)
    state = np.array([position[0] + qop * FIELD.position(Z_VELO), position[1], slope[0] + qop * FIELD.slope(Z_VELO)])
    return hits[::-1], np.array([*state, slope[1]])


def toy_track(rng: np.random.Generator) -> LongTrack:
    """A track that scatters as the fit assumes and misses one layer in twelve."""
    p = float(np.exp(rng.uniform(np.log(2.5e3), np.log(5e4))))
    charge = float(rng.choice([-1.0, 1.0]))
    slope, azimuth = rng.uniform(0.02, 0.2), rng.uniform(-np.pi, np.pi)
    velo, line_state = velo_part(rng, slope * np.array([np.cos(azimuth), np.sin(azimuth)]), charge / p)
    tx, ty = line_state[2:]
    measured_p = p - PARAMETERS.energy_loss + rng.normal(0.0, ENERGY_LOSS_ERROR)
    s = 1e3 * PARAMETERS.polarity * charge / measured_p * (1.0 + rng.normal(0.0, MOMENTUM_ERROR))
    line = Line.of(line_state[:, None], Z_VELO)
    kink = float(PARAMETERS.behind_velo.kink(line, np.array([s]))[0])
    levers = Levers(PARAMETERS, float(tx), float(ty))
    of_momentum = scattering_of(1 / p, float(tx), float(ty))
    scatters = Scatters(rng)
    ut: list[Hit | None] = []
    z = Z_VELO
    for layer, (plane, dx_dy) in enumerate(zip(UT_PLANES, RECORD["ut_dx_dy"].astype(float).tolist(), strict=True)):
        noise = of_layer(PARAMETERS.noise[Step.UT_LAYER][2] * of_momentum, plane.z - z)
        if layer == 0:
            noise = of_step(PARAMETERS.noise[Step.BEFORE_UT] * of_momentum)
        scatters.step(plane.z - z if layer else 0.0, noise)
        if layer == 0:
            scatters.off[0, 0] += UT_LEVER_ERROR * kink * rng.normal()
        z = plane.z
        x = float(line.x_at(z)[0]) + kink * levers.in_ut(kink, z) + scatters.off[0, 0]
        y = float(line.y_at(z)[0]) + scatters.off[1, 0]
        hit = Hit(x - dx_dy * y + rng.normal(0.0, np.sqrt(UT_VARIANCE)), z, dx_dy, 0.0, float(np.float32(UT_VARIANCE)))
        ut.append(None if rng.random() < 1 / 12 else hit)
    curve = PARAMETERS.behind_velo.curve(line, np.array([kink]))
    scifi: list[Hit | None] = []
    for layer in range(N_LAYERS):
        plane_z, dx_dy, dz_dy = (float(RECORD[f"layer_{name}"][layer]) for name in ("z", "dx_dy", "dz_dy"))
        at = plane_z + dz_dy * float(curve.y_at(plane_z)[0])
        noise = of_layer(LAYER_SLOPE * of_momentum, at - z)
        scatters.step(at - z, of_step(PARAMETERS.noise[Step.MAGNET] * of_momentum) if layer == 0 else noise)
        z = at
        dz = at - Z_REFERENCE
        slope_x = float((curve.tx + 2.0 * curve.quadratic * dz + 3.0 * curve.cubic * dz**2)[0])
        variance = SCIFI_VARIANCE + SCIFI_OBLIQUE_VARIANCE * slope_x**2
        x, y = float(curve.x_at(at)[0]) + scatters.off[0, 0], float(curve.y_at(at)[0]) + scatters.off[1, 0]
        measured = x - dx_dy * y + rng.normal(0.0, np.sqrt(variance))
        missed = layer > 0 and rng.random() < 1 / 12
        scifi.append(None if missed else Hit(measured, at - dz_dy * y, dx_dy, dz_dy))
    scatters.step(Z_END - z, of_layer(LAYER_SLOPE * of_momentum, Z_END - z))
    dz = Z_END - Z_REFERENCE
    tx_end = float((curve.tx + 2.0 * curve.quadratic * dz + 3.0 * curve.cubic * dz**2)[0])
    end = np.array([float(curve.x_at(Z_END)[0]), float(curve.y_at(Z_END)[0]), tx_end, float(curve.ty[0])])
    end += scatters.off.T.ravel()
    return LongTrack(velo, charge / p, tx_end + rng.normal(0.0, 1e-3), ut, scifi, end)


@dataclass(frozen=True, slots=True)
class LongEvents:
    """Events of such tracks as columns."""

    events: list[list[LongTrack]]

    @property
    def sample(self) -> TrackSample:
        return TrackSample([[track.velo for track in event] for event in self.events])

    @property
    def limits(self) -> BatchLimits:
        most = max(len(event) for event in self.events)
        return replace(self.sample.limits, input_bytes=128 * len(self.events) * (most + 1))

    def columns(self) -> dict[str, NDArray[Any]]:
        n, most = len(self.events), max(len(event) for event in self.events)
        long_columns = {name: np.zeros((n, MAX_TRACKS_PER_EVENT), np.float32) for name in ("qop", "tx")}
        velo_track = np.zeros((n, MAX_TRACKS_PER_EVENT), np.uint16)
        columns = {
            **self.sample.buffers(),
            "velo_field": np.array([FIELD.bend, FIELD.gradient], np.float32),
            "long_track_parameters": RECORD.reshape(1),
            "long_tracks.count": np.array([len(event) for event in self.events], np.uint32),
        }
        for event, tracks in enumerate(self.events):
            long_columns["qop"][event, : len(tracks)] = [track.qop for track in tracks]
            long_columns["tx"][event, : len(tracks)] = [track.tx_end for track in tracks]
            velo_track[event, : len(tracks)] = np.arange(len(tracks))
        for detector, hits_of, width in (("ut", "ut_hits", N_UT_LAYERS), ("scifi", "hits", N_LAYERS)):
            hits = np.full((n, MAX_TRACKS_PER_EVENT, width), NO_HIT, np.uint16)
            places = np.zeros((3, n, width * most), np.float32)
            for event, tracks in enumerate(self.events):
                for i, track in enumerate(tracks):
                    for layer, hit in enumerate(getattr(track, detector)):
                        if hit is not None:
                            hits[event, i, layer] = width * i + layer
                            weight = 1.0 / hit.variance if hit.variance else 0.0
                            places[:, event, width * i + layer] = hit.x, hit.z, weight
            columns[f"long_tracks.{hits_of}"] = hits.ravel()
            columns[f"{detector}_hits.offset"] = (np.arange(n + 1) * width * most).astype(np.uint32)
            columns |= {f"{detector}_hits.{name}": places[k].ravel() for k, name in enumerate(("x", "z"))}
            columns |= {"ut_hits.weight": places[2].ravel()} if detector == "ut" else {}
        columns |= {f"long_tracks.{name}": values.ravel() for name, values in long_columns.items()}
        columns["long_tracks.velo_track"] = velo_track.ravel()
        return columns

    def fitted(self, block_size: int | None = None, *, backward: bool = False) -> dict[str, NDArray[Any]]:
        columns, limits = self.columns(), self.limits
        return run(FULL, columns, len(self.events), limits, block_size, backward=backward, fill=0xA5)

    def expected(self, event: int, track: int) -> FullFit:
        one = self.events[event][track]
        velo = one.velo.astype(np.float32).astype(np.float64)[::-1]
        qop, tx_end = float(np.float32(one.qop)), float(np.float32(one.tx_end))
        return fit_through_detectors(PARAMETERS, FIELD, velo, qop, tx_end, one.ut, UT_PLANES, one.scifi, PLANES)


RESULTS = ("fitted_qop", "qop_error", "full_chi2", "ut_chi2")


def results(columns: dict[str, NDArray[Any]], events: list[int], names: tuple[str, ...] = RESULTS) -> FloatArray:
    """[track][q/p, its error, chi2, chi2 of the UT] of all tracks."""
    rows = [columns[f"long_tracks.{name}"].reshape(-1, MAX_TRACKS_PER_EVENT) for name in names]
    return np.concatenate([[row[event, :n] for row in rows] for event, n in enumerate(events)], axis=1).T.astype(float)


END = tuple(f"end_{name}" for name in long_end_state)


@pytest.fixture(scope="module")
def toys() -> LongEvents:
    rng = np.random.default_rng(12)
    return LongEvents([[toy_track(rng) for _ in range(n)] for n in (35, 0, 1, 20)])


def test_single_precision_agrees_with_matrices_in_double_precision(toys: LongEvents) -> None:
    columns, events = toys.fitted(), [len(event) for event in toys.events]
    expected = [toys.expected(event, i) for event, tracks in enumerate(toys.events) for i in range(len(tracks))]
    assert len(expected) == 56
    for (qop, error, chi2, ut_chi2), oracle in zip(results(columns, events), expected, strict=True):
        assert qop == pytest.approx(oracle.qop, abs=0.01 * oracle.error)
        assert error == pytest.approx(oracle.error, rel=2e-3)
        assert chi2 == pytest.approx(oracle.chi2, rel=5e-3, abs=5e-3)
        assert ut_chi2 == pytest.approx(oracle.ut_chi2, rel=5e-3, abs=5e-3)
    for found, oracle in zip(results(columns, events, END), expected, strict=True):
        c = oracle.covariance
        assert np.all(np.abs(found[:4] - oracle.state) < 0.02 * np.sqrt(np.diag(c)[:4]))
        of_kernel = (c[0, 0], c[2, 0], c[2, 2], c[1, 1], c[3, 1], c[3, 3])
        assert found[4:] == pytest.approx(of_kernel, rel=5e-3)


@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_every_block_size_gives_the_same_bits(toys: LongEvents, block_size: int, backward: bool) -> None:
    reference, result = toys.fitted(), toys.fitted(block_size, backward=backward)
    assert [name for name in reference if reference[name].tobytes() != result[name].tobytes()] == []


def test_pulls_of_tracks_that_scatter_as_assumed_are_one() -> None:
    rng = np.random.default_rng(13)
    toys = LongEvents([[toy_track(rng) for _ in range(900)]])
    columns = toys.fitted()
    found = results(columns, [900])
    truth = np.array([track.qop for track in toys.events[0]])
    pulls = (found[:, 0] - truth) / found[:, 1]
    assert np.std(pulls) == pytest.approx(1.0, abs=0.1)
    assert abs(np.mean(pulls * np.sign(truth))) < 0.15
    assert np.mean(found[:, 2]) == pytest.approx(1.0, abs=0.1)
    end = results(columns, [900], END)
    sigma = np.sqrt(end[:, [4, 7, 6, 9]])
    of_end = (end[:, :4] - np.array([track.end for track in toys.events[0]])) / sigma
    assert np.std(of_end, axis=0) == pytest.approx(np.ones(4), abs=0.1)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_an_impossible_track_keeps_the_momentum_that_it_has_and_touches_no_other(
    toys: LongEvents, value: float
) -> None:
    expected = toys.fitted()
    columns = toys.columns()
    columns["long_tracks.tx"] = columns["long_tracks.tx"].copy()
    columns["long_tracks.tx"][2] = value
    result = run(FULL, columns, len(toys.events), toys.limits, fill=0xA5)
    assert result["long_tracks.fitted_qop"][2] == result["long_tracks.qop"][2]
    assert result["long_tracks.qop_error"][2] == np.float32(0.01)
    others = np.arange(35) != 2
    for name in (*RESULTS, *END):
        before, after = expected[f"long_tracks.{name}"], result[f"long_tracks.{name}"]
        assert np.array_equal(before[:35][others], after[:35][others])


def test_a_track_without_hits_behind_the_velo_keeps_its_kink() -> None:
    track = toy_track(np.random.default_rng(14))
    bare = replace(track, ut=[None] * N_UT_LAYERS, scifi=[None] * N_LAYERS)
    ((qop, error, chi2, ut_chi2),) = results(LongEvents([[bare]]).fitted(), [1])
    assert qop == pytest.approx(track.qop, rel=0.05)
    assert error > 0.0
    assert (chi2, ut_chi2) == (0.0, 0.0)


def test_ut_hits_make_the_momentum_more_accurate(toys: LongEvents) -> None:
    events = [len(event) for event in toys.events]
    bare = LongEvents([[replace(track, ut=[None] * N_UT_LAYERS) for track in event] for event in toys.events])
    with_ut, without = results(toys.fitted(), events), results(bare.fitted(), events)
    assert np.median(with_ut[:, 1] / without[:, 1]) < 0.95


@pytest.mark.physics
def test_momenta_of_the_real_events_from_velo_and_scifi_are_within_seven_per_mille(shared: Path) -> None:
    given = real_tracks(shared)
    columns = dict(given.columns)
    (path,) = (shared / "data/lhcb-minbias-mdf").glob("*retina3*.mdf")
    scifi = SciFiGeometry.load(shared / "data/lhcb-geometry")
    record = record_of(PARAMETERS, scifi)
    n = given.n_events
    hits = np.full((n, MAX_TRACKS_PER_EVENT, N_LAYERS), NO_HIT, np.uint16)
    tx_end = np.zeros((n, MAX_TRACKS_PER_EVENT), np.float32)
    xs, zs, offsets = [], [], [0]
    for event, banks in enumerate(r.banks() for r in iter_records(path.read_bytes())):
        found = scifi.hits(decode_scifi(list(banks)))
        place = {lhcb_id: i for i, lhcb_id in enumerate(found.lhcb_id.tolist())}
        xs.append(found.x)
        zs.append(found.z)
        offsets.append(offsets[-1] + len(found.x))
        for i, particle in enumerate(given.particles[event]):
            velo = int(columns["velo_clusters.offset"][event]) // 2
            velo += int(columns["long_tracks.velo_track"][event * MAX_TRACKS_PER_EVENT + i])
            state = [columns[f"velo_end.{name}"][velo : velo + 1] for name in ("x", "y", "tx", "ty")]
            line = Line.of(np.array(state, np.float64), Z_VELO)
            s = 1e3 * PARAMETERS.polarity * particle.charge / np.array([particle.p - PARAMETERS.energy_loss])
            curve = PARAMETERS.behind_velo.curve(line, PARAMETERS.behind_velo.kink(line, s))
            tx_end[event, i] = (curve.tx + 2 * curve.quadratic * 890.0 + 3 * curve.cubic * 890.0**2)[0]
            for lhcb_id in particle.scifi_ids:
                if lhcb_id in place:
                    hit = place[lhcb_id]
                    layer = int(np.argmin(np.abs(RECORD["layer_z"] - found.z[hit])))
                    hits[event, i, layer] = hit
    columns |= {
        "long_track_parameters": np.frombuffer(record, LONG_TRACK_PARAMETERS.dtype),
        "long_tracks.hits": hits.ravel(),
        "long_tracks.ut_hits": np.full(n * MAX_TRACKS_PER_EVENT * N_UT_LAYERS, NO_HIT, np.uint16),
        "ut_hits.offset": np.zeros(n + 1, np.uint32),
        **{f"ut_hits.{name}": np.zeros(1, np.float32) for name in ("x", "z", "weight")},
        "long_tracks.tx": tx_end.ravel(),
        "scifi_hits.offset": np.array(offsets, np.uint32),
        "scifi_hits.x": np.concatenate(xs).astype(np.float32),
        "scifi_hits.z": np.concatenate(zs).astype(np.float32),
    }
    fitted = run(FULL, columns, n, replace(given.limits, input_bytes=1 << 18))
    result = results(fitted, [len(of_event) for of_event in given.particles])
    particles = [p for of_event in given.particles for p in of_event]
    truth = np.array([p.charge / p.p for p in particles])
    good = np.array([abs(p.pid) != 11 and p.p > 3e3 for p in particles]) & (result[:, 2] < 6.0)
    assert good.sum() > 250
    relative = truth[good] / result[good, 0] - 1.0
    assert abs(np.median(relative)) < 0.003
    assert np.percentile(np.abs(relative - np.median(relative)), 68.27) < 0.007
    # Relative to the median: the built-in field is slightly stronger than the field of these events.
    pulls = (relative - np.median(relative)) * np.abs(result[good, 0]) / result[good, 1]
    assert np.percentile(np.abs(pulls), 68.27) == pytest.approx(1.05, abs=0.2)
