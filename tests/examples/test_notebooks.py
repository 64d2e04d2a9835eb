"""The notebooks run from their first cell to the last, and their files have the output of such a run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import zmq.asyncio

import hltnode
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.replay.single_node import feed_meps
from tests.daemon.fakes import eventually, make_config, make_feeder, node_of_engine, synthetic_meps
from tests.daemon.node.test_histograms_of_a_node import EVENTS, MEPS, CountingEngine

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(name: str) -> list[str]:
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def run(name: str, **instead: str) -> dict[str, Any]:
    """Execute the code of a notebook here, with other values for some of its constants."""
    sources = cells(name)
    for constant, value in instead.items():
        line = re.compile(rf"^{constant} = .*$", re.MULTILINE)
        assert len(line.findall("\n".join(sources))) == 1, f"{name} has no {constant}"
        sources = [line.sub(f"{constant} = {value}", source) for source in sources]
    names: dict[str, Any] = {}
    for number, source in enumerate(sources):
        exec(compile(source, f"{name}.ipynb, cell {number}", "exec"), names)
    return names


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    yield
    plt.close("all")


def test_the_peak_is_where_the_particle_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hltnode.simulate(tmp_path / "jpsi.mdf", 24, sample="bjpsik")
    names = run("jpsi_peak")
    assert "24 * {dimuons: var * {mass: float32" in capsys.readouterr().out
    assert names["mass"].sum(flow=True) == len(names["masses"]) > 0
    assert abs(np.median(names["near"]) - names["known"].mass) < 30


def test_a_line_has_a_rate_and_an_efficiency(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hltnode.simulate(tmp_path / "minbias.mdf", 4)
    hltnode.simulate(tmp_path / "bsphiphi.mdf", 12, sample="bsphiphi")
    names = run("line_rate_and_efficiency")
    assert "of 4 events" in capsys.readouterr().out
    # The scan repeats the cuts of the line.
    assert names["fraction"](names["signal"], 1000) == pytest.approx(names["efficiency"])
    assert names["efficiency"] > 0


@pytest.mark.loopback
async def test_the_histograms_of_a_node_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = make_config(tmp_path)
    with zmq.asyncio.Context() as context:
        async with node_of_engine(config, CountingEngine(batch_limits(config)), "fake") as node:
            async with make_feeder(context, node) as feeder:
                await feed_meps(synthetic_meps(MEPS), [feeder])
            await eventually(lambda: node.counters.events_processed == MEPS * EVENTS)
            names = await asyncio.to_thread(
                run,
                "live_histograms",
                NODE=f'"http://127.0.0.1:{node.http_port}"',
                NAMES='["fake_mass"]',
                SECONDS="0.0",
                READINGS="2",
            )
    assert f"{MEPS * EVENTS} entries, mean 1.5 (one of each event [MeV])" in capsys.readouterr().out
    assert names["new"].sum(flow=True) == 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_output_of_a_run_from_first_to_last(path: Path) -> None:
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any(output.output_type != "stream" for cell in code for output in cell.outputs)
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3
