"""The shower of a long track and the electron network: agreement with double precision, bad values, the file."""

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
from hltnode.processing.lhcb.calorimeter.electron_network import (
    ELECTRON_NETWORK,
    INPUTS,
    ElectronNetwork,
    ElectronNetworkError,
    inputs_of,
)
from hltnode.processing.lhcb.calorimeter.identify_electrons import identify_electrons
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.ideal_ecal import N_CELLS, NO_CELL
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT, Z_END_SCIFI
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.protocol.lhcb.bank_versions import EcalVersion
from hltnode.protocol.lhcb.banks.ecal import VOID_ADC, encode_ecal_boards
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size
from tests.processing.lhcb.calorimeter.ecal_batches import (
    BUILTIN,
    SHOWER_COLUMNS,
    EcalBatch,
    board_banks,
    boards_of,
    card_banks,
    encode_mep,
    random_adc,
    random_lines,
    with_boards,
)
from tests.processing.lhcb.calorimeter.ecal_oracle import showers

NETWORK = ElectronNetwork.builtin()
LIMITS = BatchLimits(events=3, meps=1, input_bytes=1 << 14, rows=1)
COUNTS = [40, 0, 21]
CELL = 2040
"""In the outer region."""


def lines_of(tracks: NDArray[np.float64]) -> NDArray[np.float64]:
    x, y, tx, ty = tracks.T[:4]
    return np.column_stack([x - Z_END_SCIFI * tx, y - Z_END_SCIFI * ty, tx, ty])


def through(cell: int, shift: float = 0.0) -> NDArray[np.float64]:
    """A track of 10 GeV along z, `shift` mm beside the centre of a cell in x."""
    x, y = BUILTIN.centre[cell].tolist()
    return np.array([[x + shift, y, 0.0, 0.0, 1e-4]])


def showers_with(adc: NDArray[np.int64], track: NDArray[np.float64]) -> dict[str, float]:
    (event,) = EcalBatch(encode_mep([card_banks(adc)]), tracks=[track]).run()
    return {name: float(event.tracks[name][0]) for name in ("ecal_cell", *SHOWER_COLUMNS, "electron_nn")}


def test_showers_are_those_of_the_oracle() -> None:
    rng = np.random.default_rng(17)
    adc = random_adc(rng, 0.4)
    tracks = random_lines(rng, 300).astype(np.float32).astype(float)
    (event,) = EcalBatch(encode_mep([card_banks(adc)]), tracks=[tracks]).run()
    lines = lines_of(tracks)
    cells, expected = showers(BUILTIN, adc, lines)
    same = np.ones(len(lines), bool)
    for shift in ((0.02, 0.02), (-0.02, 0.02), (0.02, -0.02), (-0.02, -0.02)):
        same &= showers(BUILTIN, adc, lines + np.array((*shift, 0.0, 0.0)))[0] == cells
    assert same.mean() > 0.97
    assert {NO_CELL} < set(cells.tolist())
    np.testing.assert_array_equal(event.tracks["ecal_cell"][same], cells[same])
    for name in SHOWER_COLUMNS:
        np.testing.assert_allclose(event.tracks[name][same], expected[name][same], rtol=2e-5, atol=1e-3, err_msg=name)


def test_a_shower_lies_beside_its_track_in_widths_of_a_cell() -> None:
    """Two equal cells, one width apart: their mean place is half a width from the first one."""
    adc = np.zeros(N_CELLS, np.int64)
    neighbours = BUILTIN.neighbours[CELL][BUILTIN.neighbours[CELL] != NO_CELL]
    beside = int(neighbours[BUILTIN.centre[neighbours, 0] > BUILTIN.centre[CELL, 0] + 1.0][0])
    width = BUILTIN.module_size
    step = (BUILTIN.centre[beside] - BUILTIN.centre[CELL]) / width
    adc[[CELL, beside]] = np.rint(1e4 / BUILTIN.gain[[CELL, beside]]).astype(np.int64)
    found = showers_with(adc, through(CELL, -0.25 * width))
    assert found["ecal_cell"] == CELL
    assert found["shower_energy"] == pytest.approx(2e4, rel=0.02)
    assert found["shower_dx"] == pytest.approx(0.25 + step[0] / 2, abs=0.01)
    assert found["shower_spread_x"] == pytest.approx(abs(step[0]) / 2, abs=0.01)
    assert found["shower_dy"] == pytest.approx(step[1] / 2, abs=0.01)
    assert found["shower_peak"] == pytest.approx(0.5, abs=0.01)


def test_a_track_without_a_cell_or_without_energy_has_no_shower_and_the_response_0() -> None:
    dark = np.full(N_CELLS, -5)
    zeros = dict.fromkeys((*SHOWER_COLUMNS, "electron_nn"), 0.0)
    assert showers_with(dark, through(CELL)) == {"ecal_cell": CELL} | zeros
    beside = np.array([[1e5, 0.0, 0.0, 0.0, 1e-4]])
    assert showers_with(np.full(N_CELLS, 100), beside) == {"ecal_cell": NO_CELL} | zeros
    nan = np.array([[np.nan, 0.0, 0.0, 0.0, 1e-4]])
    assert showers_with(np.full(N_CELLS, 100), nan) == {"ecal_cell": NO_CELL} | zeros
    bright = showers_with(np.full(N_CELLS, 100), through(CELL))
    assert bright["electron_nn"] > 0.0


def test_cells_that_were_not_read_out_are_no_part_of_a_shower() -> None:
    adc = np.full(N_CELLS, 100)
    boards = boards_of(adc)
    void = with_boards().cell_of_channel[5, 16:24].astype(int)
    boards.adc[5, 16:24] = VOID_ADC
    outside = next(int(c) for v in void for c in BUILTIN.neighbours[v] if c != NO_CELL and c not in void)
    tracks = np.vstack([through(int(void[0])), through(outside)])
    whole, holed = (
        EcalBatch(encode_mep([banks]), with_boards(), tracks=[tracks]).run()[0].tracks
        for banks in (board_banks(adc), encode_ecal_boards(boards, EcalVersion.LITTLE_ENDIAN))
    )
    assert holed["ecal_cell"].tolist() == [NO_CELL, outside]
    assert holed["shower_energy"][0] == 0.0
    assert 0.0 < holed["shower_energy"][1] < whole["shower_energy"][1]


# --- the network ------------------------------------------------------------------------------------------------------


def expected_of(track: dict[str, float]) -> float:
    """Track by track and node by node (docs/physics/calorimeter.md)."""

    def of_one_and(value: float) -> float:
        return log(1.0 + min(value, 1e4)) if value > 0.0 else 0.0

    size = abs(track["qop"])
    if not (0.0 < size < 1.0 and track["shower_energy"] > 0.0):
        return 0.0
    inputs = {
        "eop": of_one_and(track["eop"]),
        "shower_eop": of_one_and(track["shower_energy"] * size),
        "brem_over_p": of_one_and(track["brem_energy"] * size),
        "inverse_momentum": log(min(max(size, 1e-6), 0.1)),
        "region": 0.0 if track["ecal_cell"] < 2688 else 1.0 if track["ecal_cell"] < 4480 else 2.0,
        "shower_dx": min(abs(track["shower_dx"]), 3.0),
        "shower_dy": min(abs(track["shower_dy"]), 3.0),
        **{name: track[name] for name in ("shower_spread_x", "shower_spread_y", "shower_peak")},
    }
    u = NETWORK.output_bias
    for node, weight in enumerate(NETWORK.output.tolist()):
        value = float(NETWORK.hidden_bias[node])
        for i, name in enumerate(INPUTS):
            value += float(NETWORK.hidden[i, node]) * (inputs[name] - float(NETWORK.mean[i])) / float(NETWORK.spread[i])
        u += weight * max(value, 0.0)
    return 0.5 * (1.0 + u / sqrt(1.0 + u * u))


def given() -> dict[str, NDArray[Any]]:
    """Columns for tracks of every kind, some without a shower."""
    rng = np.random.default_rng(31)
    n = len(COUNTS) * MAX_TRACKS_PER_EVENT
    energy = np.where(rng.random(n) < 0.1, 0.0, rng.exponential(8000.0, n))
    floats = {
        "qop": rng.choice([-1.0, 1.0], n) / np.exp(rng.uniform(np.log(1.5e3), np.log(2e5), n)),
        **{"eop": rng.exponential(0.7, n), "brem_energy": np.where(rng.random(n) < 0.5, 0.0, 3000.0)},
        **{"shower_energy": energy, "shower_dx": rng.normal(0, 1.5, n), "shower_dy": rng.normal(0, 1.5, n)},
        **{f"shower_spread_{axis}": rng.uniform(0.0, 1.0, n) for axis in "xy"},
        "shower_peak": rng.uniform(0.2, 1.0, n),
    }
    return {
        **{f"long_tracks.{name}": values.astype(np.float32) for name, values in floats.items()},
        "long_tracks.ecal_cell": rng.choice([0, 2687, 2688, 4479, 4480, 6015], n).astype(np.uint16),
        "long_tracks.count": np.array(COUNTS, np.uint32),
        "electron_network": np.frombuffer(NETWORK.to_bytes(), ELECTRON_NETWORK.dtype),
    }


def responses(columns: dict[str, NDArray[Any]], launch: Launch | None = None) -> NDArray[np.float32]:
    found = run_algorithms((identify_electrons,), columns, 3, LIMITS, launch, fill=0xA5)
    return np.concatenate(
        [found["long_tracks.electron_nn"][e * MAX_TRACKS_PER_EVENT :][:n] for e, n in enumerate(COUNTS)]
    )


def tracks_of(columns: dict[str, NDArray[Any]]) -> list[dict[str, float]]:
    places = [e * MAX_TRACKS_PER_EVENT + i for e, n in enumerate(COUNTS) for i in range(n)]
    names = [name for name in columns if name.startswith("long_tracks.") and name != "long_tracks.count"]
    return [{name.partition(".")[2]: float(columns[name][place]) for name in names} for place in places]


def test_the_kernel_gives_what_the_network_gives_in_double_precision() -> None:
    columns = given()
    found, tracks = responses(columns), tracks_of(columns)
    expected = np.array([expected_of(track) for track in tracks])
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert 0 < (expected == 0.0).sum() < len(expected) / 2
    assert ((expected >= 0.0) & (expected <= 1.0)).all()
    arrays = {name: np.array([track[name] for track in tracks]) for name in tracks[0]}
    has_shower = expected > 0.0
    np.testing.assert_allclose(NETWORK.response(inputs_of(arrays))[has_shower], expected[has_shower], atol=1e-12)


def test_every_block_size_and_the_common_kernel_give_the_same_bits() -> None:
    expected = responses(given()).tobytes()
    for target in KernelLibrary(CHAIN.kernels).targets:
        assert responses(given(), on_cpu(target)).tobytes() == expected
        assert responses(given(), on_cpu(target, common=True)).tobytes() == expected
    for block_size in (1, 32, 100):
        for backward in (False, True):
            assert responses(given(), with_block_size(block_size, backward=backward)).tobytes() == expected


def test_impossible_values_give_a_response_and_touch_no_other_track() -> None:
    before = responses(given())
    others = np.arange(len(before)) != 3
    for value in (np.nan, np.inf, -np.inf, 0.0):
        for name in ("qop", "eop", "brem_energy", "shower_energy"):
            columns = given()
            columns[f"long_tracks.{name}"][3] = value
            found = responses(columns)
            assert 0.0 <= found[3] <= 1.0
            has_none = name in ("qop", "shower_energy") and not (name == "shower_energy" and value == np.inf)
            assert (found[3] == 0.0) == has_none, (name, value)
            assert np.array_equal(found[others], before[others])
    # A momentum of 1 MeV is none.
    columns = given()
    columns["long_tracks.qop"][3:5] = 1.0, np.nextafter(np.float32(1.0), np.float32(0.0))
    columns["long_tracks.shower_energy"][3:5] = 1000.0
    assert (responses(columns)[3:5] > 0.0).tolist() == [False, True]


def test_the_file_is_read_as_it_was_written_and_others_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "electron_network.json"
    path.write_text(NETWORK.as_json())
    assert ElectronNetwork.load(tmp_path).to_bytes() == NETWORK.to_bytes()
    n = len(INPUTS)
    for change, message in (
        ({"format": "hltnode ghost network"}, "expected"),
        ({"version": 7}, "version 7, expected"),
        ({"inputs": ["eop"]}, "has the inputs"),
        ({"hidden": [[0.0] * 16] * (n - 1)}, "hidden must be finite numbers of the shape"),
        ({"spread": [0.0] * n}, "spread must be above 0"),
        ({"mean": [float("nan")] * n}, "mean must be finite numbers"),
    ):
        path.write_text(json.dumps(json.loads(NETWORK.as_json()) | change))
        with pytest.raises(ElectronNetworkError, match=f"{path}.*{message}"):
            ElectronNetwork.load(tmp_path)
    path.unlink()
    with pytest.raises(ElectronNetworkError, match=r"electron_network\.json: cannot be read"):
        ElectronNetwork.load(tmp_path)


def test_the_key_of_a_configuration_stands_for_the_weights() -> None:
    sequence = CHAIN.with_sequence("hlt1_2026").sequence
    (constant,) = identify_electrons.constants
    assert (constant.name, constant.value) == ("weights", NETWORK.checksum)
    assert replace(NETWORK, output_bias=NETWORK.output_bias + 1e-3).checksum != NETWORK.checksum
    trigger = TriggerConfig.from_toml("[sequence.ecal_identify_electrons]\nweights = 5\n", CHAIN.menu)
    with pytest.raises(TriggerConfigError, match="weights"):
        trigger.configure(sequence)
