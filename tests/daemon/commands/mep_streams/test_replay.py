"""Options of hltnode replay: endpoints, parts, and their errors."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hltnode.client.sockets import control_endpoint
from hltnode.daemon.cli import app
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.mep_source import MepStream, Packing, meps_of_files
from hltnode.daemon.replay.single_node import share
from hltnode.daemon.replay.site import make_identities
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.protocol.raw_data.mep import encode_mep
from tests.daemon.fakes import SOURCES, synthetic_meps


@pytest.fixture
def stream(tmp_path: Path) -> MepStream:
    path = tmp_path / "x.mep"
    path.write_bytes(b"".join(encode_mep(list(m.mfps.values())) for m in synthetic_meps(1)))
    return meps_of_files([path], LHCB_READOUT, Packing(events_per_mep=1, max_fragment_bytes=1 << 20, run=1))


def test_the_control_port_follows_the_data_port() -> None:
    assert control_endpoint("tcp://node7:5555") == "tcp://node7:5556"
    with pytest.raises(ValueError, match="give the control endpoint"):
        control_endpoint("ipc:///run/data.sock")


def test_sources_are_spread_without_loss() -> None:
    assert share((1, 2, 3, 4, 5), 2) == [(1, 3, 5), (2, 4)]
    assert share((1, 2), 5) == [(1,), (2,)]
    assert share((1, 2, 3), 0) == [(1,), (2,), (3,)]


def test_parts_of_several_processes_together_have_all_sources(stream: MepStream) -> None:
    parts = [make_identities(stream, "host", 1, f"{i}/3", "lhcb") for i in (1, 2, 3)]
    assert sorted(s for [identity] in parts for s in identity.sources) == sorted(SOURCES)
    assert len({identity.name for [identity] in parts}) == 3


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "a/b", "1/5"])
def test_a_part_that_does_not_exist_is_refused(stream: MepStream, part: str) -> None:
    with pytest.raises(FeedError, match="--part"):
        make_identities(stream, "host", 1, part, "lhcb")


@pytest.mark.parametrize("arguments", [[], ["--simulate", "x.mdf"]])
def test_exactly_one_kind_of_input_is_needed(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["replay", "--to", "tcp://127.0.0.1:5555", *arguments])
    assert result.exit_code == 2
    assert "--simulate" in result.stderr


def test_an_endless_replay_of_one_part_is_refused_with_advice() -> None:
    arguments = ["x.mdf", "--loop", "--part", "1/2"]
    result = CliRunner().invoke(app, ["replay", "--to", "tcp://127.0.0.1:5555", *arguments])
    assert result.exit_code == 2
    assert "--loop and --part" in result.stderr
    assert "--jobs instead of --part" in " ".join(result.stderr.split())


def test_serve_names_the_key_of_a_broken_configuration(tmp_path: Path) -> None:
    config = tmp_path / "node.toml"
    config.write_text("[pipeline]\nslots = 'many'\n")
    result = CliRunner().invoke(app, ["serve", "--config", str(config)])
    assert result.exit_code == 2
    assert "pipeline.slots" in result.stderr


@pytest.mark.parametrize("command", ["serve", "replay", "demo"])
def test_help_has_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: hltnode {command}" in " ".join(result.stdout.split())
