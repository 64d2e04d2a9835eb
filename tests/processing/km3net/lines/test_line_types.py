"""Lines on windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hltnode.processing.km3net.hits.collections import Trigger
from tests.processing.km3net.telescope_events import mep_of_hits, run_chain, simulated

LINES = """
[[lines]]
type = "WindowHits"
name = "Hits"
min_hits = 9
min_pmts = 8
[[lines]]
type = "CausalWindow"
name = "Causal"
min_causal_hits = 7
[[lines]]
type = "ChargedWindow"
name = "Charged"
min_charge = 1500
"""


def test_each_line_selects_the_sub_slices_with_such_a_window() -> None:
    found = run_chain(mep_of_hits(simulated(21, 60, muon_rate=20_000.0)), LINES)
    selections: dict[str, Callable[[Any], Any]] = {
        "Hits": lambda w: (w["hits"] >= 9) & (w["pmts"] >= 8),
        "Causal": lambda w: w["causal_hits"] >= 7,
        "Charged": lambda w: w["charge"] >= 1500,
    }
    for name, selects in selections.items():
        expected = [bool(np.any(selects(windows))) for windows in found.windows]
        assert [name in lines for lines in found.lines] == expected, name
        assert 3 < sum(expected) < 50, name


def test_the_shipped_lines_need_a_window() -> None:
    found = run_chain(mep_of_hits(simulated(22, 30, muon_rate=10_000.0)))
    for windows, lines in zip(found.windows, found.lines, strict=True):
        assert ("Km3netN7" in lines) == (len(windows) > 0)
        assert ("Km3netCausal" in lines) == bool((windows["causal_hits"] >= 6).any())
        if len(windows):
            assert (windows["lines"] & int(Trigger.TRIGGER_N7)).all()
    assert any(found.lines)
