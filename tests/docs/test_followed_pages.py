"""README, tutorial and the page on feeding work from the first command to the last."""

import shutil
from pathlib import Path

import pytest

from tests.docs.followed_page import ROOT, Reader, blocks

# Consecutive processes take seconds on a free machine, and more than the usual limit on a loaded one.
pytestmark = [pytest.mark.process, pytest.mark.loopback, pytest.mark.timeout(400)]

README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
FEEDING = ROOT / "docs" / "how-to" / "feed-from-your-daq.md"

NOT_RUN = {
    (README, "the test has an environment that is built"),
    (TUTORIAL, "the test has an environment that is built"),
    (TUTORIAL, "the test has a folder and a PATH of its own"),
    (FEEDING, "libzmq with its headers is not on each machine; tests/client/c compiles and runs it"),
}
"""Reasons why blocks of these pages are not run; tests/docs/test_commands.py checks that their commands exist."""


@pytest.fixture(autouse=True)
def curl() -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl, which the pages use, is not installed")


@pytest.mark.expensive("runs each command of the page")
def test_who_follows_the_readme_sees_what_it_shows(tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        reader.follow(README)


@pytest.mark.expensive("runs each command of the page")
def test_who_follows_the_tutorial_sees_what_it_shows(tmp_path: Path) -> None:
    with Reader(tmp_path, "tutorial") as reader:
        reader.follow(TUTORIAL)


@pytest.mark.expensive("runs each command of the page")
def test_who_feeds_from_a_daq_of_their_own_sees_what_the_page_shows(tmp_path: Path) -> None:
    with Reader(tmp_path, "feeding") as reader:
        reader.follow(FEEDING)


def test_each_block_is_run_but_those_that_are_named_here() -> None:
    not_run = {
        (page, block.mark.removeprefix("skip, "))
        for page in (README, TUTORIAL, FEEDING)
        for block in blocks(page)
        if block.mark.startswith("skip, ")
    }
    assert not_run == NOT_RUN


def test_the_feeder_in_c_of_the_page_is_that_of_the_library() -> None:
    files = [block.content for block in blocks(FEEDING) if block.mark == "file feeder.c"]
    assert files == [(ROOT / "client" / "c" / "feeder.c").read_text("utf-8")]


def test_the_menu_of_the_tutorial_is_that_of_the_examples() -> None:
    files = [block.content for block in blocks(TUTORIAL) if block.mark == "file trigger.toml"]
    assert files == [(ROOT / "examples" / "trigger.toml").read_text("utf-8")]
