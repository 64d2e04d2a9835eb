"""The curves over the number of partners have a number for each configuration, and rise where they must."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from benchmarks.lhcb import velo_partners
from benchmarks.measure import Result
from hltnode.processing.lhcb.offline.validation.readers.velopix import read_velopix


@pytest.mark.physics
def test_more_partners_match_more_pairs_and_find_more_particles(shared: Path) -> None:
    events = list(islice(read_velopix(shared / "data" / "velo-truth" / "bsphiphi.jsonl.gz"), 8))
    found = velo_partners.curves(events, shared / "data" / "lhcb-geometry", (1, 8), 1)
    assert list(found) == ["1", "8", "halves_apart", "single_modules"]
    for key in ("pairs_matched", "efficiency_velo"):
        assert 0.5 < found["1"][key] < found["8"][key] <= 1.0
    assert found["halves_apart"]["clones"] > found["8"]["clones"]
    for numbers in found.values():
        assert numbers["search_ratio"] > 0.0
        assert numbers["hit_efficiency_first3"] > 0.8


def test_the_summary_has_fractions_and_ratios_by_configuration() -> None:
    rows = [
        Result("3, ghosts", 1.5, "%", "truth", None),
        Result("3, search_ratio", 1.2, "", "8 partners", 1.2),
        Result("halves_apart, clones", 2.0, "%", "truth", None),
    ]
    assert velo_partners.summary(rows) == {
        "3": {"ghosts": 0.015, "search_ratio": 1.2},
        "halves_apart": {"clones": 0.02},
    }
