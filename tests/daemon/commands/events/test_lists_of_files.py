"""hltnode process --accepted --lists: accepted events carry output lists, as those of a node."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import hltnode
from hltnode.daemon.cli import app
from hltnode.protocol.raw_data.bank_types import LIST_TYPES
from hltnode.protocol.raw_data.list_banks import decode_lists

runner = CliRunner()
TRIGGER = """[sequence]
name = "labelled_images"

[[lines]]
type = "ComponentCount"
name = "Some"
min_components = 3
"""


def run(*arguments: object) -> Any:
    return runner.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight images of 0 to 7 % foreground; those with few components are not accepted."""
    folder = tmp_path_factory.mktemp("lists")
    options = ("--width", 40, "--height", 20, "--granularity", 2, "-o", folder / "i.mdf")
    made = run("simulate", "--chain", "ccl", "-n", 8, *options)
    assert made.exit_code == 0, made.output
    (folder / "trigger.toml").write_text(TRIGGER)
    return folder


def process(folder: Path, name: str, *options: object) -> tuple[list[dict[str, Any]], list[hltnode.Event]]:
    """What `process` found for the accepted events, and these events as a reader sees them."""
    arguments = (
        "process",
        "--chain",
        "ccl",
        folder / "i.mdf",
        "--backend",
        "cpu",
        "--trigger",
        folder / "trigger.toml",
    )
    made = run(*arguments, "--accepted", folder / f"{name}.mdf", "--json", folder / f"{name}.json", *options)
    assert made.exit_code == 0, made.output
    found = json.loads((folder / f"{name}.json").read_text())["per_event"]
    return [event for event in found if event["accepted"]], list(hltnode.open(folder / f"{name}.mdf", chain="ccl"))


def test_accepted_events_carry_the_lists_that_are_named_and_readers_find_the_values(images: Path) -> None:
    found, events = process(images, "with", "--lists", "runs,features", "--threads", 2)
    assert 0 < len(found) < 8
    assert [event.number for event in events] == [event["event"] for event in found]
    for event, expected in zip(events, found, strict=True):
        assert set(event.lists) == {"runs", "features"}
        assert event.lists["features"]["area"].tolist() == expected["area"]
        assert event.lists["runs"]["label"].tolist() == expected["label"]
        # The banks of the first name have the first type.
        banks = [bank for bank in event.raw_banks if bank.type == LIST_TYPES[0]]
        assert set(decode_lists(banks)) == {"runs"}


def test_accepted_events_carry_no_lists_unless_they_are_named(images: Path) -> None:
    _, events = process(images, "without")
    assert events
    assert all(not event.lists for event in events)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lists", "features"], "expected --accepted with --lists"),
        (["--lists", "tracks", "--accepted", "x.mdf"], "chain ccl has no list 'tracks'"),
        (["--lists", "runs,runs", "--accepted", "x.mdf"], "each once, instead of runs, runs"),
    ],
)
def test_process_refuses_lists_that_cannot_be_written(images: Path, options: list[str], message: str) -> None:
    options = [str(images / option) if option == "x.mdf" else option for option in options]
    refused = run("process", "--chain", "ccl", images / "i.mdf", "--trigger", images / "trigger.toml", *options)
    assert refused.exit_code == 2
    assert message in " ".join(refused.output.split())
    assert not (images / "x.mdf").exists()
