"""`hltnode record` and the tap of a node whose keys differ: an error that names the options."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from typer.testing import CliRunner

from hltnode.daemon.cli import app

pytestmark = pytest.mark.loopback


@pytest.fixture
def tap(request: pytest.FixtureRequest) -> Iterator[str]:
    """Endpoint of a PUB socket, with CURVE if the parameter is true."""
    with zmq.Context() as context, context.socket(zmq.PUB) as node:
        node.setsockopt(zmq.LINGER, 0)
        if request.param:
            node.curve_server = True
            node.curve_secretkey = zmq.curve_keypair()[1]
        yield f"tcp://127.0.0.1:{node.bind_to_random_port('tcp://127.0.0.1')}"


def record(folder: Path, tap: str, *options: str) -> str:
    # --wait: without it the absence of data would end the command after some seconds.
    result = CliRunner().invoke(app, ["record", str(folder), "--from", tap, "--wait", "--seconds", "20", *options])
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


@pytest.mark.parametrize("tap", [True], indirect=True)
def test_a_node_with_curve_is_named_with_the_options_that_give_the_keys(tap: str, tmp_path: Path) -> None:
    said = record(tmp_path / "out", tap)
    assert "the node uses CURVE, and no keys are given" in said
    assert "--server-key" in said
    assert "--key-file" in said


@pytest.mark.parametrize("tap", [True, False], indirect=True, ids=["other key", "no CURVE"])
def test_keys_that_do_not_fit_the_node_are_named(tap: str, tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["keys", "create", str(tmp_path), "--name", "own"]).exit_code == 0
    keys = ("--server-key", str(tmp_path / "own.key"), "--key-file", str(tmp_path / "own.key_secret"))
    assert "does the node use CURVE, and is --server-key its public key?" in record(tmp_path / "out", tap, *keys)
