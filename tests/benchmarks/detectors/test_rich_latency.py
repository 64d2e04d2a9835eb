"""The latency of a node beside a bare loop: the figures, and a loop that computes what a node computes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.detectors import rich_latency
from benchmarks.detectors.rich_bare_loop import compile_command
from benchmarks.detectors.rich_latency import LOOP, NODE, PACKETS, Turn
from benchmarks.readout import udp
from benchmarks.service.latency import WHOLE, Counted
from hltnode.daemon.common.vocabulary import MepStage
from hltnode.processing.na62.offline.simulation.events import Conditions

BATCHES = 20


def node_of(ms: float) -> dict[str, Counted]:
    """A node whose MEPs all took the same time, a bound of the histogram, as far as the histogram tells."""
    bounds = np.array([1e-3, 1.5e-3, 8e-3, np.inf])
    of = Counted(bounds, np.where(bounds >= ms * 1e-3, 100.0, 0.0), 0.1 * ms)
    return dict.fromkeys((WHOLE, *MepStage), of)


def test_ratios_are_medians_over_turns_and_quantiles_are_of_all_turns() -> None:
    turns = [Turn([0.625] * 99 + [5.0], node_of(ms)) for ms in (1.0, 1.5, 8.0)]
    found = {row.name: row for row in rich_latency.results(turns)}
    assert found[f"{NODE}: p50, ratio"].value == turns[1].ratio(50.0) == pytest.approx(2.0)
    assert found[f"{NODE}: p50, ratio"].reached
    slow = {row.name: row for row in rich_latency.results([Turn([0.4], node_of(1.5))])}
    assert not slow[f"{NODE}: p50, ratio"].reached
    assert found[f"{LOOP}: p50"].value == 0.625
    assert found[f"{LOOP}: greatest"].value == 5.0
    assert found[f"{NODE}: greatest"].value == pytest.approx(8.0)
    figures = rich_latency.summary(list(found.values()))
    assert figures["p50_ratio"] == found[f"{NODE}: p50, ratio"].value
    assert figures["p99_ratio"] == found[f"{NODE}: p99, ratio"].value
    assert figures["bare_p50_ms"] == 0.625
    assert figures["greatest_ms"] == pytest.approx(8.0)


@pytest.mark.alone
@pytest.mark.process
def test_the_bare_loop_computes_each_batch_as_the_back_end_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "loop.so"
    subprocess.run(compile_command(library), check=True)
    monkeypatch.setattr(rich_latency, "BATCHES_PER_SECOND", BATCHES)
    monkeypatch.setattr(rich_latency, "BURSTS", 1)
    packets = udp.rich_burst(tmp_path / "packets", Conditions(), BATCHES * PACKETS)
    latencies = rich_latency.loop_latencies(library, udp.compiled("udp_generator", tmp_path), packets)
    assert len(latencies) == BATCHES
    assert min(latencies) > 0.0
