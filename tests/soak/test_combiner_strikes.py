"""Two nodes and a combiner under strikes lose no window and keep none twice.

`HLTNODE_COMBINER_SOAKS=20 pytest tests/soak/test_combiner_strikes.py` runs 20 soaks with other orders.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import pytest

from tests.daemon.processes.combined_farm import Farm, confirmed, two_streams
from tests.soak.combiner_strikes import CombinerStrikes, Strike, plan

SOAKS = int(os.environ.get("HLTNODE_COMBINER_SOAKS", "1"))
STRIKES = 5


def test_each_kind_of_strike_comes_before_any_comes_again() -> None:
    for seed in range(20):
        strikes = plan(seed, 12)
        assert len(strikes) == 12
        assert set(strikes[:5]) == set(strikes[5:10]) == set(Strike)
    assert plan(1, 5) != plan(2, 5)


@pytest.mark.expensive("kills nodes and combiner of a stream again and again")
@pytest.mark.process
@pytest.mark.loopback
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(SOAKS))
def test_no_window_is_lost_or_kept_twice_under_strikes(stream: ModuleType, tmp_path: Path, seed: int) -> None:
    streams = two_streams(stream, seed=8 + seed)
    wanted = confirmed(streams)
    assert len(wanted) > 3
    farm = Farm(tmp_path, stream, streams)
    try:
        farm.start_combiner()
        for site, slices in zip(farm.sites, farm.slices, strict=True):
            farm.start_node(site)
            farm.start_feeder(site, slices)
        farm.site.wait_for(lambda: min(farm.processed(site) for site in farm.sites) >= 3, 180.0)
        strikes = CombinerStrikes(farm)
        for strike in plan(seed, STRIKES):
            print(f"seed {seed}: {strike}")
            strikes.execute(strike)
        farm.check_end()
    finally:
        farm.end()
    farm.check_windows(streams, wanted)
