"""`hltnode demo` of a chain without events: a stream in slices, a feeder that is killed, windows against one slice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.stream_demo import hits_missing
from hltnode.protocol.raw_data.time_windows import TimeWindow, WindowStatus


def test_hits_of_windows_are_counted_against_the_stream() -> None:
    window = TimeWindow(
        *(1, 0, 0, 100, 200, 0, 1000, 1, 1, WindowStatus(0), 0),
        sources=np.zeros(2, np.uint16),
        times=np.array([100, 199]),
        hits=np.zeros((2, 8), np.uint8),
    )
    more = replace(window, start_ns=200, end_ns=300)
    times = np.array([99, 100, 150, 199, 200, 300])
    assert hits_missing([window, more], times).tolist() == [1, -1]
    assert hits_missing([], times).tolist() == []


@pytest.mark.process
@pytest.mark.loopback
@pytest.mark.parametrize(
    ("chain", "seed", "candidates", "at_borders", "span"),
    [
        ("km3net", 1, 51, 4, "1.5 ms"),
        # Seed 35: the hits of a decay lie from 3,199 to 3,207 ns; 3,200 ns is a border of slices.
        ("mu3e", 35, 5, 1, "24.0 us"),
    ],
    ids=["km3net", "mu3e"],
)
def test_no_window_and_no_hit_is_lost_or_doubled_when_a_source_is_killed(
    chain: str, seed: int, candidates: int, at_borders: int, span: str, tmp_path: Path
) -> None:
    result, folder = tmp_path / "d.json", tmp_path / "out"
    options = ["-n", "60", "--feeders", "2", "--rate", "40", "--seed", str(seed), "-o", str(folder)]
    done = CliRunner().invoke(app, ["demo", "--chain", chain, *options, "--json", str(result)])
    assert done.exit_code == 0, done.output
    found = json.loads(result.read_text())
    assert found["candidates"] >= candidates
    assert found["found_at_borders"] >= at_borders
    assert {name: found[name] for name in ("lost", "doubled", "hits_lost", "hits_doubled")} == {
        "lost": 0, "doubled": 0, "hits_lost": 0, "hits_doubled": 0,
    }  # fmt: skip
    assert found["accounting_closes"] is True
    assert (found["killed"], found["slices"], found["feeders"]) == (1, 30, 2)
    assert f"2 feeders sent {span} of hits" in done.output
    assert "started again" in done.output


def test_a_stream_is_not_sent_as_datagrams(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", "--chain", "km3net", "--transport", "udp", "-o", str(tmp_path)])
    assert done.exit_code == 2
    assert "the demo sends a stream over TCP" in done.output
