"""The ghost probability of long tracks: agreement of the kernel with the network in double precision, rejection in
simulated events, and the file of the network."""

from __future__ import annotations

import json
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.tracks.kalman.ghost_network import GHOST_NETWORK, INPUTS, GhostNetwork, GhostNetworkError
from hltnode.processing.lhcb.tracks.kalman.ghost_probability import ghost_probability
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT, TrackOrigin
from hltnode.processing.lhcb.ut.collections import NO_HIT
from tests.processing.lhcb.fit_chain import run

NETWORK = GhostNetwork.builtin()
LIMITS = BatchLimits(events=3, meps=1, input_bytes=1 << 14, rows=1)
COUNTS = [40, 0, 7]


def expected(track: dict[str, float], n_ut: int) -> float:
    """Track by track and node by node (docs/physics/ghost-probability.md)."""

    def of_one_and(value: float) -> float:
        return log(1.0 + min(value, 1e4)) if value > 0.0 else 0.0

    inputs = {
        "velo_chi2": of_one_and(track["chi2"]),
        "full_chi2": of_one_and(track["full_chi2"]),
        "ut_chi2": of_one_and(track["ut_chi2"]),
        "ut_hits": n_ut,
        "velo_hits": track["velo_hit_count"],
        "scifi_hits": track["hit_count"],
        "inverse_momentum": log(min(max(abs(track["fitted_qop"]), 1e-6), 0.1)),
        "angle": log(min(max(track["beam_tx"] ** 2 + track["beam_ty"] ** 2, 1e-6), 1.0)),
        "momentum_change": of_one_and(abs(track["qop"] - track["fitted_qop"]) / track["qop_error"]),
        "matched": float(track["origin"] == TrackOrigin.MATCHED),
        "end_tx_change": of_one_and(1e3 * abs(track["end_tx"] - track["tx"])),
        "end_ty_change": of_one_and(1e3 * abs(track["end_ty"] - track["ty"])),
        "end_y_change": of_one_and(abs(track["end_y"] - track["y"])),
    }
    u = NETWORK.output_bias
    for node, weight in enumerate(NETWORK.output.tolist()):
        value = float(NETWORK.hidden_bias[node])
        for i, name in enumerate(INPUTS):
            value += float(NETWORK.hidden[i, node]) * (inputs[name] - float(NETWORK.mean[i])) / float(NETWORK.spread[i])
        u += weight * max(value, 0.0)
    return 0.5 * (1.0 + u / sqrt(1.0 + u * u))


def given() -> dict[str, NDArray[Any]]:
    """Columns for tracks of every kind."""
    rng = np.random.default_rng(21)
    n = len(COUNTS) * MAX_TRACKS_PER_EVENT
    qop = rng.choice([-1.0, 1.0], n) / np.exp(rng.uniform(np.log(1.5e3), np.log(2e5), n))
    tx, ty, y = rng.normal(0.0, 0.1, n), rng.normal(0.0, 0.1, n), rng.normal(0.0, 500.0, n)
    floats = {
        **{"chi2": rng.gamma(2.0, 0.5, n), "full_chi2": rng.gamma(2.0, 1.0, n), "ut_chi2": rng.gamma(1.0, 1.0, n)},
        **{"fitted_qop": qop, "qop_error": 0.005 * np.abs(qop), "qop": qop * rng.normal(1.0, 0.02, n)},
        **{"tx": tx, "ty": ty, "y": y, "beam_tx": 0.5 * tx, "beam_ty": ty},
        **{"end_tx": tx + rng.normal(0.0, 1e-3, n), "end_ty": ty + rng.normal(0.0, 1e-3, n)},
        "end_y": y + rng.normal(0.0, 2.0, n),
    }
    return {
        **{f"long_tracks.{name}": values.astype(np.float32) for name, values in floats.items()},
        "ghost_network": np.frombuffer(NETWORK.to_bytes(), GHOST_NETWORK.dtype),
        "long_tracks.count": np.array(COUNTS, np.uint32),
        "long_tracks.velo_track": np.tile(np.arange(MAX_TRACKS_PER_EVENT), len(COUNTS)).astype(np.uint16) % 100,
        "long_tracks.origin": rng.integers(0, 3, n).astype(np.uint8),
        "long_tracks.hit_count": rng.integers(9, 13, n).astype(np.uint8),
        "long_tracks.ut_hits": np.where(rng.random(4 * n) < 0.3, NO_HIT, 5).astype(np.uint16),
        "velo_clusters.offset": np.arange(4, dtype=np.uint32) * 250,
        "velo_tracks.hit_count": rng.integers(3, 15, 400).astype(np.uint8),
    }


def probabilities(columns: dict[str, NDArray[Any]], block_size: int | None = None, *, backward: bool = False) -> Any:
    found = run((ghost_probability,), columns, 3, LIMITS, block_size, backward=backward, fill=0xA5)
    return found["long_tracks.ghost_probability"]


def test_the_kernel_gives_what_the_network_gives_in_double_precision() -> None:
    columns = given()
    found = probabilities(columns)
    for event, n in enumerate(COUNTS):
        for i in range(n):
            place = event * MAX_TRACKS_PER_EVENT + i
            track = {
                name.partition(".")[2]: float(values[place])
                for name, values in columns.items()
                if name.startswith("long_tracks.") and len(values) == len(COUNTS) * MAX_TRACKS_PER_EVENT
            }
            velo = int(columns["velo_clusters.offset"][event]) // 2 + int(track["velo_track"])
            track["velo_hit_count"] = float(columns["velo_tracks.hit_count"][velo])
            n_ut = int((columns["long_tracks.ut_hits"].reshape(-1, 4)[place] != NO_HIT).sum())
            assert 0.0 <= found[place] <= 1.0
            assert found[place] == pytest.approx(expected(track, n_ut), abs=2e-5)


@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_every_block_size_gives_the_same_bits(block_size: int, backward: bool) -> None:
    assert probabilities(given()).tobytes() == probabilities(given(), block_size, backward=backward).tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
def test_an_impossible_fit_gives_a_probability_and_touches_no_other_track(value: float) -> None:
    columns = given()
    expected_of_others = probabilities(columns)
    for name in ("chi2", "full_chi2", "ut_chi2", "fitted_qop", "qop_error", "beam_tx", "end_tx", "end_y"):
        columns[f"long_tracks.{name}"][3] = value
    found = probabilities(columns)
    assert 0.0 <= found[3] <= 1.0
    others = np.arange(COUNTS[0]) != 3
    assert np.array_equal(found[: COUNTS[0]][others], expected_of_others[: COUNTS[0]][others])


def test_the_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "ghost_network.json").write_text(NETWORK.as_json())
    assert GhostNetwork.load(tmp_path).to_bytes() == NETWORK.to_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 7}, "version 7, expected"),
        ({"inputs": ["velo_chi2"]}, "has the inputs"),
        ({"hidden_bias": [0.0]}, "hidden_bias must be finite numbers of the shape"),
        ({"spread": [0.0] * len(INPUTS)}, "spread must be above 0"),
        ({"spread": [1e-40] * len(INPUTS)}, "spread must be above 0, 1.18e-38 at least"),
        ({"mean": [1e39] * len(INPUTS)}, "mean must be finite numbers .* of 3.4e.38 at most"),
        ({"output_bias": 10**400}, "too large"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_name(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "ghost_network.json"
    path.write_text(json.dumps(json.loads(NETWORK.as_json()) | change))
    with pytest.raises(GhostNetworkError, match=f"{path}.*{message}"):
        GhostNetwork.load(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GhostNetworkError, match=r"ghost_network\.json: cannot be read"):
        GhostNetwork.load(tmp_path)
