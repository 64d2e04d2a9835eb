"""The muon network: agreement with double precision, bad values, the file, and the key."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.muon.collections import FEATURES, NO_HIT, STUB_NUMBERS
from hltnode.processing.lhcb.muon.identify_tracks import identify_tracks
from hltnode.processing.lhcb.muon.muon_network import (
    INPUTS,
    MUON_NETWORK,
    MuonNetwork,
    MuonNetworkError,
    inputs_of,
)
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size

NETWORK = MuonNetwork.builtin()
LIMITS = BatchLimits(events=3, meps=1, input_bytes=1 << 14, rows=1)
COUNTS = [40, 0, 21]
RESIDUALS = FEATURES.index("muon_x_m2")
CROSSED = FEATURES.index("muon_crossed_m2")


def given() -> dict[str, NDArray[Any]]:
    """Columns for tracks of every kind, some without muon hits."""
    rng = np.random.default_rng(41)
    n = len(COUNTS) * MAX_TRACKS_PER_EVENT
    hits = rng.integers(0, 300, (n, 4))
    hits[rng.random(n) < 0.3, 2:] = NO_HIT
    hits[rng.random(n) < 0.2] = NO_HIT
    features = rng.normal(0.0, 3.0, (n, len(FEATURES)))
    features[:, CROSSED : CROSSED + 4] = rng.integers(0, 3, (n, 4))
    features[rng.random(n) < 0.1, RESIDUALS] = -10_000.0
    stub = rng.normal(0.0, 0.01, (n, len(STUB_NUMBERS)))
    stub[:, 0], stub[:, 4] = rng.exponential(30.0, n), rng.integers(1, 900, n)
    floats = {
        "qop": rng.choice([-1.0, 1.0], n) / np.exp(rng.uniform(np.log(3e3), np.log(2e5), n)),
        **{"tx": rng.normal(0, 0.1, n), "ty": rng.normal(0, 0.1, n), "muon_chi2": rng.exponential(6.0, n)},
        "ecal_energy": np.where(rng.random(n) < 0.1, 0.0, rng.exponential(2000.0, n)),
        **{"muon_features": features.ravel(), "muon_stub": stub.ravel()},
    }
    return {
        **{f"long_tracks.{name}": values.astype(np.float32) for name, values in floats.items()},
        "long_tracks.muon_hits": hits.astype(np.uint16).ravel(),
        "long_tracks.count": np.array(COUNTS, np.uint32),
        "muon_network": np.frombuffer(NETWORK.to_bytes(), MUON_NETWORK.dtype),
    }


def places() -> list[int]:
    return [event * MAX_TRACKS_PER_EVENT + i for event, n in enumerate(COUNTS) for i in range(n)]


def responses(columns: dict[str, NDArray[Any]], launch: Launch | None = None) -> NDArray[np.float32]:
    found = run_algorithms((identify_tracks,), columns, 3, LIMITS, launch, fill=0xA5)
    made: NDArray[np.float32] = found["long_tracks.muon_nn"][places()]
    return made


def of_track(columns: dict[str, NDArray[Any]], place: int) -> float:
    """Input by input and node by node (docs/physics/muon.md)."""

    def row(name: str, width: int) -> list[float]:
        values: list[float] = columns[f"long_tracks.{name}"][place * width : (place + 1) * width].tolist()
        return values

    def of_one_and(value: float) -> float:
        return log(1.0 + min(value, 1e4)) if value > 0.0 else 0.0

    n_hits = sum(hit != NO_HIT for hit in row("muon_hits", 4))
    if n_hits == 0:
        return 0.0
    features, stub = row("muon_features", 20), dict(zip(STUB_NUMBERS, row("muon_stub", 5), strict=True))
    (chi2,), (qop,), (tx,), (ty,), (energy,) = (
        row(name, 1) for name in ("muon_chi2", "qop", "tx", "ty", "ecal_energy")
    )
    inputs = {
        "chi2": of_one_and(chi2),
        "uncorrelated_chi2": of_one_and(stub["chi2"]),
        **{name: log(min(max(abs(stub[name]), 1e-5), 1.0)) for name in ("dtx", "dty", "velo_dty")},
        "inverse_momentum": log(min(max(abs(qop), 1e-6), 0.1)),
        "angle": log(min(max(tx**2 + ty**2, 1e-6), 1.0)),
        "stations": float(n_hits),
        "crossed": float(sum(value == 2.0 for value in features[CROSSED : CROSSED + 4])),
        "event_hits": of_one_and(stub["event_hits"]),
        "ecal_energy": of_one_and(energy),
        **{
            f"{axis}_m{station}": of_one_and(min(abs(features[RESIDUALS + 4 * i + station - 2]), 30.0))
            for i, axis in enumerate("xy")
            for station in range(2, 6)
        },
    }
    u = NETWORK.output_bias
    for node, weight in enumerate(NETWORK.output.tolist()):
        value = float(NETWORK.hidden_bias[node])
        for i, name in enumerate(INPUTS):
            value += float(NETWORK.hidden[i, node]) * (inputs[name] - float(NETWORK.mean[i])) / float(NETWORK.spread[i])
        u += weight * max(value, 0.0)
    return 0.5 * (1.0 + u / sqrt(1.0 + u * u))


def test_the_kernel_gives_what_the_network_gives_in_double_precision() -> None:
    columns = given()
    found = responses(columns)
    expected = np.array([of_track(columns, place) for place in places()])
    np.testing.assert_allclose(found, expected, atol=3e-5)
    assert 0 < (expected == 0.0).sum() < len(expected) / 2
    assert expected.max() - expected[expected > 0].min() > 0.3
    widths = {"muon_features": 20, "muon_stub": 5, "muon_hits": 4}
    arrays = {}
    for name, values in columns.items():
        short, width = name.partition(".")[2], widths.get(name.partition(".")[2], 1)
        if name.startswith("long_tracks.") and short != "count":
            arrays[short] = values.reshape(-1, width)[places()] if width > 1 else values[places()]
    has_hits = expected > 0.0
    np.testing.assert_allclose(NETWORK.response(inputs_of(arrays))[has_hits], expected[has_hits], atol=1e-9)


def test_every_block_size_and_every_instruction_set_give_the_same_bits() -> None:
    expected = responses(given()).tobytes()
    for target in KernelLibrary(CHAIN.kernels).targets:
        assert responses(given(), on_cpu(target)).tobytes() == expected
    for block_size in (1, 32, 100):
        for backward in (False, True):
            assert responses(given(), with_block_size(block_size, backward=backward)).tobytes() == expected


def test_impossible_values_give_a_response_and_touch_no_other_track() -> None:
    before = responses(given())
    others = np.arange(len(before)) != 3
    for value in (np.nan, np.inf, -np.inf, 0.0):
        for name, width in (
            ("qop", 1),
            ("tx", 1),
            ("muon_chi2", 1),
            ("ecal_energy", 1),
            ("muon_stub", 5),
            ("muon_features", 20),
        ):
            columns = given()
            columns["long_tracks.muon_hits"][12:16] = 1, 2, 3, 4
            columns[f"long_tracks.{name}"][3 * width : 4 * width] = value
            found = responses(columns)
            assert 0.0 < found[3] <= 1.0, (name, value)
            assert np.array_equal(found[others], before[others])


def test_the_file_is_read_as_it_was_written_and_others_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "muon_network.json"
    path.write_text(NETWORK.as_json())
    assert MuonNetwork.load(tmp_path).to_bytes() == NETWORK.to_bytes()
    n = len(INPUTS)
    for change, message in (
        ({"format": "hltnode electron network"}, "expected"),
        ({"version": 7}, "version 7, expected"),
        ({"inputs": ["chi2"]}, "has the inputs"),
        ({"hidden": [[0.0] * 16] * (n - 1)}, "hidden must be finite numbers of the shape"),
        ({"spread": [0.0] * n}, "spread must be above 0"),
        ({"mean": [float("nan")] * n}, "mean must be finite numbers"),
    ):
        path.write_text(json.dumps(json.loads(NETWORK.as_json()) | change))
        with pytest.raises(MuonNetworkError, match=f"{path}.*{message}"):
            MuonNetwork.load(tmp_path)
    path.unlink()
    with pytest.raises(MuonNetworkError, match=r"muon_network\.json: cannot be read"):
        MuonNetwork.load(tmp_path)


def test_the_key_of_a_configuration_stands_for_the_weights() -> None:
    sequence = CHAIN.with_sequence("hlt1_2026").sequence
    (constant,) = identify_tracks.constants
    assert (constant.name, constant.value) == ("weights", NETWORK.checksum)
    assert replace(NETWORK, output_bias=NETWORK.output_bias + 1e-3).checksum != NETWORK.checksum
    trigger = TriggerConfig.from_toml("[sequence.muon_identify_tracks]\nweights = 5\n", CHAIN.menu)
    with pytest.raises(TriggerConfigError, match="weights"):
        trigger.configure(sequence)


def test_only_the_sequence_of_2026_has_the_network() -> None:
    for name, of in CHAIN.sequences.items():
        assert (identify_tracks in tuple(of.algorithms)) == (name == "hlt1_2026"), name
