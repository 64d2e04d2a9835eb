"""Two nodes and a combiner as processes; the combiner and one node are killed while they take slices."""

from __future__ import annotations

import signal
from pathlib import Path
from types import ModuleType

import pytest

from tests.daemon.processes.combined_farm import Farm, confirmed, two_streams

pytestmark = [pytest.mark.process, pytest.mark.loopback]


def test_windows_of_two_nodes_are_joined_once_in_spite_of_kills(stream: ModuleType, tmp_path: Path) -> None:
    streams = two_streams(stream, seed=8)
    wanted = confirmed(streams)
    assert 3 < len(wanted) < len(streams[0].merged())
    farm = Farm(tmp_path, stream, streams)
    one, two = farm.sites
    try:
        farm.start_combiner()
        for site, slices in zip(farm.sites, farm.slices, strict=True):
            farm.start_node(site)
            farm.start_feeder(site, slices)
        one.wait_for(lambda: min(farm.processed(site) for site in farm.sites) >= 12, 180.0)
        farm.combiner.kill()
        assert one.wait(farm.combiner) == -signal.SIGKILL
        farm.start_combiner()
        one.wait_for(lambda: farm.processed(two) >= 30, 180.0)
        two.node.kill()  # type: ignore[attr-defined]
        assert two.wait(two.node) == -signal.SIGKILL  # type: ignore[attr-defined]
        farm.start_node(two)
        for site in farm.sites:
            assert site.wait(site.feeder, 240.0) == 0, farm.logs()  # type: ignore[attr-defined]
        metrics = farm.metrics()
        farm.check_end()
    finally:
        farm.end()
    assert 'hltnode_combiner_slices_total{end="incomplete"} 0.0' in metrics
    assert 'hltnode_combiner_reports_total{node="two"}' in metrics
    farm.check_windows(streams, wanted)
