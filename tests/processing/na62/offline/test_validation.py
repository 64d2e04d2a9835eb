"""The checker of rings, the command, and the numbers that the search reaches."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.na62.offline.simulation.sample import RichOptions, RichSample, encode_block
from hltnode.processing.na62.offline.validation.report import text_of
from hltnode.processing.na62.offline.validation.ring_checker import MATCH_DISTANCE, RingChecker
from hltnode.processing.na62.rich.collections import RING
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.na62.rich_banks import TRUE_RING


def true(*rings: tuple[float, float, float, int]) -> np.ndarray:
    return np.array([(x, y, r, 25.0, hits, 1, 0) for x, y, r, hits in rings], TRUE_RING)


def found(*rings: tuple[float, float, float]) -> np.ndarray:
    return np.array([(x, y, r, 1.0, 20) for x, y, r in rings], RING.dtype)


def test_a_true_ring_takes_the_nearest_ring_and_the_others_are_fakes() -> None:
    checker = RingChecker()
    two = true((0, 0, 180, 20), (100, 0, 150, 18))
    checker.add(two, found((101, 0, 151), (0, 2, 180)), 40)
    checker.add(two, found((0, 2, 180), (0, 3, 181)), 40)
    checker.add(true((0, 0, 180, 20)), found((0, 0, 180 + MATCH_DISTANCE + 0.1)), 30)
    checker.add(true((0, 0, 180, 20)), found((0, 0, 180 + MATCH_DISTANCE - 0.1)), 21)
    # Light of 9 tubes: it does not count, and its ring is no fake.
    checker.add(true((0, 0, 180, 9)), found((1, 0, 180)), 9)
    checker.add(None, found((0, 0, 1)), 1)
    result = checker.result()
    assert result["rings"] == {"1": 0.5, "2": 0.5, "3": None}
    assert (result["events"], result["without_truth"]) == (6, 1)
    assert result["fakes_per_event"] == 2 / 5
    assert result["fakes_of_rings"] == {"0": 0.0, "1": 0.5, "2": 0.5}
    (of_distance,) = (row for row in result["of_distance"] if row["events"])
    assert (of_distance["from"], of_distance["events"], of_distance["efficiency"]) == (100.0, 2, 0.5)
    assert {row["from"]: row["efficiency"] for row in result["of_noise"] if row["events"]} == {1: 1.0, 8: 0.0}
    assert " 50.0%" in text_of(result)


def test_the_command_reaches_the_efficiencies_and_writes_the_page(tmp_path: Path) -> None:
    file, numbers, page = tmp_path / "r.mdf", tmp_path / "v.json", tmp_path / "v.html"
    file.write_bytes(encode_block(RichSample(SampleRequest(seed=8), RichOptions()), 0, 300))
    command = ["validate", "--chain", "na62_rich", str(file), "--json", str(numbers), "--report", str(page)]
    done = CliRunner().invoke(app, [*command, "--backend", "cpu", "--threads", "1"])
    assert done.exit_code == 0, done.output
    result = json.loads(numbers.read_text())
    assert result["rings"]["1"] > 0.96
    assert result["fakes_per_event"] < 0.1
    assert "fakes per event" in done.output
    assert page.read_text().count("<svg") == 3
    again = CliRunner().invoke(app, [*command[:-1], str(tmp_path / "w.html"), "--force", "--against", str(numbers)])
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize(("decay", "least", "most"), [("pipi0", 0.97, 1.0), ("munu", 0.0, 0.03), ("3pi", 0.0, 0.05)])
def test_the_shipped_line_accepts_one_decay_and_rejects_the_others(
    tmp_path: Path, decay: str, least: float, most: float
) -> None:
    file, numbers = tmp_path / "d.mdf", tmp_path / "p.json"
    n = 400
    for command in (
        ["simulate", "--chain", "na62_rich", "--decay", decay, "-n", str(n), "--seed", "31", "-o", str(file)],
        ["process", "--chain", "na62_rich", str(file), "--backend", "cpu", "--threads", "1", "--json", str(numbers)],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    lines = json.loads(numbers.read_text())["rates"]["lines"]
    assert least <= lines["RichPionAndNeutralPion"]["events"] / n <= most


@pytest.mark.slow
def test_the_search_reaches_its_goals_on_decays_by_their_fractions(tmp_path: Path) -> None:
    file, numbers = tmp_path / "r.mdf", tmp_path / "v.json"
    file.write_bytes(encode_block(RichSample(SampleRequest(seed=77), RichOptions()), 0, 6000))
    done = CliRunner().invoke(app, ["validate", "--chain", "na62_rich", str(file), "--json", str(numbers)])
    assert done.exit_code == 0, done.output
    result = json.loads(numbers.read_text())
    assert result["rings"]["1"] >= 0.985
    assert result["rings"]["2"] >= 0.85
    assert result["rings"]["3"] >= 0.60
    assert result["fakes_per_event"] <= 0.1
