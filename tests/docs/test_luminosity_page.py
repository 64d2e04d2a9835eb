"""docs/physics/luminosity.md: the commands of the page give its output, and the true mean number of collisions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hltnode
from tests.docs.followed_page import ROOT, Reader, blocks

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

PAGE = ROOT / "docs" / "physics" / "luminosity.md"
NU, EFFICIENCY = 1.5, 0.0582
"""Of the page."""


def test_who_follows_the_page_measures_the_true_mu(tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        reader.follow(PAGE)
        events = list(hltnode.open(reader.folder / "lumi_accepted.mdf"))
    assert all({"VeloTracks", "PlumeAvgLumiADC"} <= event.luminosity.keys() for event in events)
    (shown,) = re.findall(r"PlumeChannels \(log-zero\): mu ([\d.]+) \+- ([\d.]+)", PAGE.read_text("utf-8"))
    mu, error = (float(number) / EFFICIENCY for number in shown)
    assert abs(mu - NU) < 2 * error < NU


def test_each_block_of_commands_is_run() -> None:
    assert [block.mark for block in blocks(PAGE) if block.mark] == ["file lumi.toml"]
