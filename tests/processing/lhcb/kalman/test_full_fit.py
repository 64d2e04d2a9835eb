"""The fit of long tracks through the SciFi: the low-rank filter in single precision against matrices in double
precision, its pulls, and the momenta of the real events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.long_tracks.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.long_tracks.parameters import LONG_TRACK_PARAMETERS, record_of
from hltnode.processing.lhcb.parametrisation.functions import BehindMagnet
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.parametrisation.tracks import Line
from hltnode.processing.lhcb.scifi.collections import NO_HIT
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.raw_data.mdf import iter_records
from tests.processing.lhcb.fit_chain import FULL, run
from tests.processing.lhcb.given_columns import real_tracks
from tests.processing.lhcb.kalman.full_fit_oracle import (
    ENERGY_LOSS,
    HIT_VARIANCE,
    Z_END,
    Z_VELO,
    FullFit,
    SciFiHit,
    fit_through_scifi,
    kink_of,
    layer_noise,
    magnet_noise,
)

PARAMETERS = LongTrackParameters.builtin()
FUNCTIONS: BehindMagnet = PARAMETERS.behind_velo
RECORD = np.frombuffer(record_of(PARAMETERS, SciFiGeometry.builtin()), LONG_TRACK_PARAMETERS.dtype)[0]
VELO_VARIANCES = (2.2e-4, 2.5e-6, 4.5e-8)
N_LAYERS = 12
PLANES = list(zip(RECORD["layer_z"].astype(float).tolist(), RECORD["layer_dz_dy"].astype(float).tolist(), strict=True))
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScifiTrack:
    """State (x, y, tx, ty) at the end of the VELO as it was found, true q/p at the origin, slope at z = 9410, hits."""

    velo: FloatArray
    qop: float
    tx_end: float
    hits: list[SciFiHit | None]


def toy_track(rng: np.random.Generator) -> ScifiTrack:
    """A track that scatters as the fit assumes and misses one layer in twelve."""
    tx, ty = rng.uniform(-0.2, 0.2, 2)
    velo = np.array([Z_VELO * tx, Z_VELO * ty, tx, ty])
    p = float(np.exp(rng.uniform(np.log(2.5e3), np.log(5e4))))
    charge = float(rng.choice([-1.0, 1.0]))
    s = 1e3 * PARAMETERS.polarity * charge / (p - ENERGY_LOSS)
    line = Line.of(velo[:, None], Z_VELO)
    curve = FUNCTIONS.curve(line, FUNCTIONS.kink(line, np.array([s])))
    end = Z_END - 8520.0
    tx_end = float((curve.tx + 2.0 * curve.quadratic * end + 3.0 * curve.cubic * end**2)[0])
    off = np.zeros((2, 2))  # [x or y][position, slope] less those of the track that does not scatter
    hits: list[SciFiHit | None] = []
    z = 0.0
    for layer in range(N_LAYERS):
        plane, dx_dy, dz_dy = (float(RECORD[f"layer_{name}"][layer]) for name in ("z", "dx_dy", "dz_dy"))
        at = plane + dz_dy * float((curve.y + curve.ty * (plane - 8520.0))[0])
        noise = magnet_noise(1e3 / p, tx, ty) if layer == 0 else layer_noise(1e3 / p, tx, ty, at - z)
        off[:, 0] += off[:, 1] * (at - z) if layer else 0.0
        off += rng.normal(size=(2, 2)) @ np.linalg.cholesky(noise + 1e-18 * np.eye(2)).T
        dz = at - 8520.0
        x = float((curve.x + curve.tx * dz + curve.quadratic * dz**2 + curve.cubic * dz**3)[0]) + off[0, 0]
        y = float((curve.y + curve.ty * dz)[0]) + off[1, 0]
        measured = x - dx_dy * y + rng.normal(0.0, np.sqrt(HIT_VARIANCE))
        missed = layer > 0 and rng.random() < 1 / 12
        hits.append(None if missed else SciFiHit(measured, at - dz_dy * y, dx_dy, dz_dy))
        z = at
    c00, c20, c22 = VELO_VARIANCES
    smear = rng.normal(size=(2, 2)) @ np.linalg.cholesky([[c00, c20], [c20, c22]]).T
    found = velo + np.array([smear[0, 0], smear[1, 0], smear[0, 1], smear[1, 1]])
    return ScifiTrack(found, charge / p, tx_end + rng.normal(0.0, 1e-3), hits)


@dataclass(frozen=True, slots=True)
class ScifiEvents:
    """Events of such tracks as columns."""

    events: list[list[ScifiTrack]]

    @property
    def limits(self) -> BatchLimits:
        most = max(len(event) for event in self.events)
        return BatchLimits(events=len(self.events), meps=1, input_bytes=128 * len(self.events) * (most + 1), rows=1)

    def columns(self) -> dict[str, NDArray[Any]]:
        n, most = len(self.events), max(len(event) for event in self.events)
        states = np.zeros((7, n, most), np.float32)
        states[4:] = np.array(VELO_VARIANCES)[:, None, None]
        long_columns = {name: np.zeros((n, MAX_TRACKS_PER_EVENT), np.float32) for name in ("qop", "tx")}
        velo_track = np.zeros((n, MAX_TRACKS_PER_EVENT), np.uint16)
        hits = np.full((n, MAX_TRACKS_PER_EVENT, N_LAYERS), NO_HIT, np.uint16)
        places = np.zeros((2, n, N_LAYERS * most), np.float32)
        for event, tracks in enumerate(self.events):
            for i, track in enumerate(tracks):
                states[:4, event, i] = track.velo
                long_columns["qop"][event, i] = track.qop
                long_columns["tx"][event, i] = track.tx_end
                velo_track[event, i] = i
                for layer, hit in enumerate(track.hits):
                    if hit is not None:
                        hits[event, i, layer] = N_LAYERS * i + layer
                        places[:, event, N_LAYERS * i + layer] = hit.x, hit.z
        names = ("x", "y", "tx", "ty", "c00", "c20", "c22")
        return {
            "long_track_parameters": RECORD.reshape(1),
            "velo_clusters.offset": (np.arange(n + 1) * 2 * most).astype(np.uint32),
            **{f"velo_end.{name}": values.ravel() for name, values in zip(names, states, strict=True)},
            "long_tracks.count": np.array([len(event) for event in self.events], np.uint32),
            **{f"long_tracks.{name}": values.ravel() for name, values in long_columns.items()},
            "long_tracks.velo_track": velo_track.ravel(),
            "long_tracks.hits": hits.ravel(),
            "scifi_hits.offset": (np.arange(n + 1) * N_LAYERS * most).astype(np.uint32),
            "scifi_hits.x": places[0].ravel(),
            "scifi_hits.z": places[1].ravel(),
        }

    def fitted(self, block_size: int | None = None, *, backward: bool = False) -> dict[str, NDArray[Any]]:
        columns, limits = self.columns(), self.limits
        return run(FULL, columns, len(self.events), limits, block_size, backward=backward, fill=0xA5)

    def expected(self, event: int, track: int) -> FullFit:
        one = self.events[event][track]
        velo = one.velo.astype(np.float32).astype(np.float64)
        kink = kink_of(FUNCTIONS, float(velo[2]), float(velo[3]), float(np.float32(one.tx_end)))
        return fit_through_scifi(FUNCTIONS, PARAMETERS.polarity, velo, VELO_VARIANCES, kink, one.qop, one.hits, PLANES)


def results(columns: dict[str, NDArray[Any]], events: list[int]) -> FloatArray:
    """[track][q/p, its error, chi2] of all tracks."""
    names = ("fitted_qop", "qop_error", "full_chi2")
    rows = [columns[f"long_tracks.{name}"].reshape(-1, MAX_TRACKS_PER_EVENT) for name in names]
    return np.concatenate([[row[event, :n] for row in rows] for event, n in enumerate(events)], axis=1).T.astype(float)


@pytest.fixture(scope="module")
def toys() -> ScifiEvents:
    rng = np.random.default_rng(12)
    return ScifiEvents([[toy_track(rng) for _ in range(n)] for n in (35, 0, 1, 20)])


def test_single_precision_agrees_with_matrices_in_double_precision(toys: ScifiEvents) -> None:
    found = results(toys.fitted(), [len(event) for event in toys.events])
    expected = [toys.expected(event, i) for event, tracks in enumerate(toys.events) for i in range(len(tracks))]
    assert len(found) == len(expected) == 56
    for (qop, error, chi2), oracle in zip(found, expected, strict=True):
        assert qop == pytest.approx(oracle.qop, abs=0.01 * oracle.error)
        assert error == pytest.approx(oracle.error, rel=2e-3)
        assert chi2 == pytest.approx(oracle.chi2, rel=5e-3, abs=5e-3)


@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_every_block_size_gives_the_same_bits(toys: ScifiEvents, block_size: int, backward: bool) -> None:
    reference, result = toys.fitted(), toys.fitted(block_size, backward=backward)
    assert [name for name in reference if reference[name].tobytes() != result[name].tobytes()] == []


def test_pulls_of_tracks_that_scatter_as_assumed_are_one() -> None:
    rng = np.random.default_rng(13)
    toys = ScifiEvents([[toy_track(rng) for _ in range(900)]])
    found = results(toys.fitted(), [900])
    truth = np.array([track.qop for track in toys.events[0]])
    pulls = (found[:, 0] - truth) / found[:, 1]
    assert np.std(pulls) == pytest.approx(1.0, abs=0.1)
    assert abs(np.mean(pulls * np.sign(truth))) < 0.15
    assert np.mean(found[:, 2]) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_an_impossible_track_keeps_the_momentum_that_it_has_and_touches_no_other(
    toys: ScifiEvents, value: float
) -> None:
    expected = toys.fitted()
    columns = toys.columns()
    columns["long_tracks.tx"] = columns["long_tracks.tx"].copy()
    columns["long_tracks.tx"][2] = value
    result = run(FULL, columns, len(toys.events), toys.limits, fill=0xA5)
    assert result["long_tracks.fitted_qop"][2] == result["long_tracks.qop"][2]
    assert result["long_tracks.qop_error"][2] == np.float32(0.01)
    others = np.arange(35) != 2
    for name in ("fitted_qop", "qop_error", "full_chi2"):
        before, after = expected[f"long_tracks.{name}"], result[f"long_tracks.{name}"]
        assert np.array_equal(before[:35][others], after[:35][others])


def test_a_track_without_scifi_hits_keeps_its_kink() -> None:
    track = toy_track(np.random.default_rng(14))
    bare = ScifiTrack(track.velo, track.qop, track.tx_end, [None] * N_LAYERS)
    ((qop, error, chi2),) = results(ScifiEvents([[bare]]).fitted(), [1])
    assert qop == pytest.approx(track.qop, rel=0.05)
    assert error > 0.0
    assert chi2 == 0.0


@pytest.mark.physics
def test_momenta_of_the_real_events_are_within_seven_per_mille(shared: Path) -> None:
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
            s = 1e3 * PARAMETERS.polarity * particle.charge / np.array([particle.p - ENERGY_LOSS])
            curve = FUNCTIONS.curve(line, FUNCTIONS.kink(line, s))
            tx_end[event, i] = (curve.tx + 2 * curve.quadratic * 890.0 + 3 * curve.cubic * 890.0**2)[0]
            for lhcb_id in particle.scifi_ids:
                if lhcb_id in place:
                    hit = place[lhcb_id]
                    layer = int(np.argmin(np.abs(RECORD["layer_z"] - found.z[hit])))
                    hits[event, i, layer] = hit
    columns |= {
        "long_track_parameters": np.frombuffer(record, LONG_TRACK_PARAMETERS.dtype),
        "long_tracks.hits": hits.ravel(),
        "long_tracks.tx": tx_end.ravel(),
        "scifi_hits.offset": np.array(offsets, np.uint32),
        "scifi_hits.x": np.concatenate(xs).astype(np.float32),
        "scifi_hits.z": np.concatenate(zs).astype(np.float32),
    }
    result = results(
        run(FULL, columns, n, replace(given.limits, input_bytes=1 << 18)), [len(p) for p in given.particles]
    )
    particles = [p for of_event in given.particles for p in of_event]
    truth = np.array([p.charge / p.p for p in particles])
    good = np.array([abs(p.pid) != 11 and p.p > 3e3 for p in particles]) & (result[:, 2] < 6.0)
    assert good.sum() > 250
    relative = truth[good] / result[good, 0] - 1.0
    assert abs(np.median(relative)) < 0.003
    assert np.percentile(np.abs(relative - np.median(relative)), 68.27) < 0.007
    pulls = (result[good, 0] - truth[good]) / result[good, 1]
    assert np.percentile(np.abs(pulls), 68.27) == pytest.approx(1.05, abs=0.2)
