"""The page on training a line: its programs train, and its lines select, on a few simulated events."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hltnode.processing.lhcb.chain import CHAIN
from tests.docs.followed_page import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "train-a-line.md"
EVENTS = 12

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]


def write_files(folder: Path) -> None:
    """The files of the page: blocks that begin with their name."""
    for block in blocks(PAGE):
        named = re.match(r"# (\w+\.(?:py|toml))\n", block.content)
        if named:
            (folder / named[1]).write_text(block.content)


def run(folder: Path, *command: str) -> None:
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def simulate(folder: Path) -> None:
    for sample, name in (("bsphiphi", "signal"), ("minbias", "minbias")):
        options = ("--sample", sample, "-n", str(EVENTS), "--seed", "1", "-o", f"{name}.mdf")
        run(folder, "-m", "hltnode.daemon", "simulate", *options)


def test_the_page_trains_trees_and_a_network_that_lines_use(tmp_path: Path) -> None:
    for package in ("xgboost", "sklearn", "skl2onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    write_files(tmp_path)
    simulate(tmp_path)
    run(tmp_path, "train.py")
    run(tmp_path, "train_network.py")
    for name, line in (("learned", "Hlt1Learned"), ("network", "Hlt1Network")):
        trigger = CHAIN.load_trigger(tmp_path / f"{name}.toml")
        assert line in trigger.line_names
        assert len(trigger.models) == 1
