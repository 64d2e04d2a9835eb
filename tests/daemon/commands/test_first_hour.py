"""The first commands of a new user: version, help, completion, configuration, and messages about mistakes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hltnode.analysis import tuple_files
from hltnode.daemon.cli import GROUPS, app, command_names, import_command
from hltnode.daemon.commands import common
from hltnode.daemon.commands.events import process
from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.processing.framework import readout

FEW = """
[network]
data = "tcp://127.0.0.1:*"
control = "tcp://127.0.0.1:*"
decisions = "tcp://127.0.0.1:*"
[http]
port = 0
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def said(result: Result) -> str:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return " ".join(result.output.split())


def test_the_version_is_printed() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert said(result).startswith("hltnode ")


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_lists_every_command_with_its_purpose(option: str) -> None:
    result = run(option)
    assert result.exit_code == 0
    listed = {line.split()[0]: line for line in result.output.splitlines() if line.startswith("  ") and line.split()}
    for name in command_names():
        assert len(listed[name].split()) > 3
    titles = [line.removesuffix(":") for line in result.output.splitlines() if line.removesuffix(":") in GROUPS]
    assert titles == list(GROUPS)
    # Each description is a whole sentence, not cut off.
    assert "..." not in result.output.partition("Options:")[2]
    assert "decays, for reconstructible decays and for all events." in said(result)


@pytest.mark.parametrize("name", command_names())
def test_every_command_explains_itself(name: str) -> None:
    result = run(name, "-h")
    assert result.exit_code == 0
    command = import_command(name)
    assert command is not None
    assert (command.help or "").split(".")[0].split()[0] in said(result)


HEAVY = (
    "asyncio", "awkward", "distributed", "matplotlib", "msgspec", "numpy", "pandas", "prometheus_client", "pyarrow",
    "pydantic_settings", "rich", "scipy", "structlog", "uproot", "uvloop", "zmq",
)  # fmt: skip
"""Libraries whose import takes 20 ms and more of processor time."""


@pytest.mark.parametrize(
    ("command", "also"),
    [("--version", ("typer", "importlib.metadata")), ("--help", ("pydantic",)), ("process --help", ())],
)
def test_the_first_answers_import_no_heavy_library(command: str, also: tuple[str, ...]) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "hltnode.daemon", *command.split()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "hltnode.daemon.common.ending" in imported
    assert not imported & {*HEAVY, *also}


def test_defaults_that_save_an_import_are_those_of_the_modules() -> None:
    assert common.DEFAULT_ENCODING == readout.AUTO
    assert process.EVENT_ROWS == tuple_files.EVENT_ROWS


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("re", ["replay", "record", "replay-check"]),
        ("config ", ["check", "explain"]),
        ("serve --c", ["--config"]),
        ("config explain http.p", ["http.port"]),
        ("process --chain l", ["lhcb"]),
        ("rates --sequence forward_", ["forward_then_matching"]),
        ("rates --scan Hlt1TrackMVA.a", ["Hlt1TrackMVA.alpha="]),
        ("rates --chain none --sequence f", []),
    ],
)
def test_the_shell_completes_commands_options_and_values(words: str, expected: list[str]) -> None:
    typed = ["hltnode", *words.split(" ")]
    environment = {
        "_HLTNODE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(typed),
        "COMP_CWORD": str(len(typed) - 1),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "hltnode.daemon"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout.split() == expected, ended.stderr


@pytest.mark.parametrize("command", [["lines", "--fields"], ["lines"], ["config", "--defaults"]])
def test_a_closed_output_pipe_is_no_error(command: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "hltnode.daemon", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 1


def test_the_defaults_are_a_configuration_that_changes_nothing(tmp_path: Path) -> None:
    result = run("config", "--defaults")
    assert result.exit_code == 0
    path = tmp_path / "node.toml"
    path.write_text(result.stdout)
    assert load_config(path) == NodeConfig()
    assert set(tomllib.loads(result.stdout)) == set(NodeConfig.model_fields)


def test_the_example_is_the_one_of_the_package() -> None:
    assert run("config", "--example").stdout == (Path(__file__).parents[3] / "deploy" / "node.toml").read_text()


def test_a_key_is_explained_with_type_default_limits_variable_and_whether_a_reload_takes_it() -> None:
    slots = said(run("config", "explain", "pipeline.slots"))
    for part in ("integer", "default 3", "≥ 2", "HLTNODE_PIPELINE__SLOTS", "a restart"):
        assert part in slots
    assert "SIGHUP" in said(run("config", "explain", "log.level"))
    assert "min_feeders" in said(run("config", "explain", "builder"))


def test_all_problems_of_a_configuration_are_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "node.toml"
    path.write_text("pipeline = 3\n[builder]\nfeeders = 4\nslot = 1\n[network]\ndata = '127.0.0.1:5555'\n")
    monkeypatch.setenv("HLTNODE_BUILDER__EXPECTED_SOURCES", "[1")
    monkeypatch.setenv("HLTNODE_LIMIT__X", "1")
    result = run("config", "check", path)
    assert result.exit_code == 1
    for part in (
        "pipeline: expected a section",
        "builder.min_feeders",
        "builder.slot: unknown key",
        "tcp://127.0.0.1:5555",
        "HLTNODE_BUILDER__EXPECTED_SOURCES",
        "as JSON, for example [0, 2048]",
        "HLTNODE_LIMIT__X: unknown section",
        "6 problems",
    ):
        assert part in said(result)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[trigger]\nfile = '{tmp}/absent.toml'", "trigger.file: "),
        ("[geometry]\ndirectory = '{tmp}/absent'", "geometry.directory: "),
        ("[output]\ndirectory = '{tmp}/absent/output'", "output.directory: there is no folder"),
        ("[security]\nserver_key = '{tmp}/key'\nfeeders = '{tmp}/absent'", "security: "),
        ("[trigger]\nchain = 'other'", "trigger.chain: no chain named 'other'"),
    ],
)
def test_files_of_a_configuration_are_checked(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(text.replace("{tmp}", str(tmp_path)))
    result = run("config", "check", path)
    assert result.exit_code == 1
    assert expected in said(result)
    assert "1 problem" in said(result)


def test_the_doctor_names_the_key_that_explains_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "node.toml"
    path.write_text(f"{FEW}[output]\ndirectory = '{tmp_path}/output'\n")
    monkeypatch.setenv("HLTNODE_PIPELINE__THREADS", "-1")
    result = run("doctor", path)
    assert result.exit_code == 1
    assert "configuration: environment: HLTNODE_PIPELINE__THREADS: pipeline.threads: expected" in said(result)
    assert "-> hltnode config explain pipeline.threads" in said(result)
    assert "SECTION.KEY" not in said(result)


def test_the_doctor_finds_a_machine_with_free_ports_and_space_ready(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(f"{FEW}[output]\ndirectory = '{tmp_path}/output'\nmax_file_bytes = 65536\n")
    result = run("doctor", path, "--json", tmp_path / "found.json")
    assert result.exit_code == 0, said(result)
    found = {finding["what"]: finding for finding in json.loads((tmp_path / "found.json").read_text())["findings"]}
    assert {"configuration", "GPU", "pinned memory", "open files", "clock", "disk space", "http.port"} <= set(found)
    assert all(finding["mend"] for finding in found.values() if finding["level"] != "OK")


@pytest.mark.loopback
def test_the_doctor_names_a_port_in_use_and_a_missing_directory(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        path = tmp_path / "node.toml"
        path.write_text(
            FEW.replace("port = 0", f"port = {port}") + f"[output]\ndirectory = '{tmp_path}/absent/output'\n"
        )
        result = run("doctor", path)
    assert result.exit_code == 1
    assert f"http.port: tcp://127.0.0.1:{port}: Address already in use" in said(result)
    assert f"mkdir -p {tmp_path}/absent" in said(result)


@pytest.mark.process
def test_serve_names_the_key_of_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for key, old, new in (
            ("network.data", 'data = "tcp://127.0.0.1:*"', f'data = "tcp://127.0.0.1:{port}"'),
            ("http.port", "port = 0", f"port = {port}"),
        ):
            path = tmp_path / "node.toml"
            path.write_text(FEW.replace(old, new) + f"[output]\ndirectory = '{tmp_path}/output'\n")
            ended = subprocess.run(
                [sys.executable, "-m", "hltnode.daemon", "serve", "--config", str(path)],
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            assert ended.returncode == 2
            error = next(line for line in ended.stderr.splitlines() if line.startswith("error: "))
            assert error.startswith(
                f"error: {path}: {key}: tcp://127.0.0.1:{port} cannot be bound: Address already in use"
            )
            assert "Traceback" not in ended.stderr
            # A node that does not start leaves neither lock nor journal.
            assert not (tmp_path / "output").exists()


FILE_COMMANDS = [
    ("process",), ("inspect",), ("rates",), ("efficiency",), ("validate",), ("replay-check",), ("histograms",),
    ("lines", "--trigger"), ("serve", "--config"), ("config", "check"), ("doctor",),
    ("replay", "--to", "tcp://127.0.0.1:1"), ("process", "{events}", "--trigger"), ("simulate", "-n", "1", "-o"),
    ("keys", "token"),
]  # fmt: skip


@pytest.mark.parametrize("command", FILE_COMMANDS, ids=" ".join)
def test_a_missing_file_and_a_folder_in_its_place_are_named(command: tuple[str, ...], tmp_path: Path) -> None:
    events = tmp_path / "events.mdf"
    events.write_bytes(b"content")
    folder = tmp_path / "folder"
    folder.mkdir()
    paths = [folder] if command[0] in ("simulate", "keys") else [folder, tmp_path / "absent"]
    for path in paths:
        result = run(*(part.format(events=events) for part in command), path)
        assert result.exit_code == 2, said(result)
        assert str(path) in said(result)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            ("replay", "{events}", "--to", "127.0.0.1:5555"),
            "--to 127.0.0.1:5555: expected the transport before it: tcp://",
        ),
        (("replay", "{events}", "--to", "tcp://127.0.0.1"), "--to tcp://127.0.0.1: expected a ZeroMQ endpoint"),
        (("record", "{tmp}/out", "--from", "127.0.0.1:5561"), "--from 127.0.0.1:5561: expected the transport"),
        (("ctl", "status", "--to", "127.0.0.1:5556"), "--to 127.0.0.1:5556: expected the transport before it: tcp://"),
        (("ctl", "status", "--http", "127.0.0.1:9105"), "127.0.0.1:9105: expected an address such as http://"),
        (("top", "127.0.0.1:9105"), "127.0.0.1:9105: expected an address such as http://"),
        (("simulate", "-n", "1", "--run", "99999999999", "-o", "{tmp}/x.mdf"), "Invalid value for '--run'"),
        (("simulate", "-n", "many", "-o", "{tmp}/x.mdf"), "Invalid value for '-n'"),
        (("ctl", "start", "--run", "99999999999"), "Invalid value for '--run'"),
        (("config", "explain", "builder.feeder"), "builder.feeder: unknown key; did you mean 'min_feeders' or "),
        (("config", "explain", "build"), "build: unknown section; did you mean 'builder'? Expected one of node"),
        (("serv",), "No such command 'serv'; did you mean 'serve'?"),
        (("xyz",), "No such command 'xyz'; hltnode --help lists all commands."),
        (("process", "{events}", "--thread", "2"), "No such option: --thread (Possible options: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_value_of_the_wrong_kind_is_named(command: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    events = tmp_path / "events.mdf"
    events.write_bytes(b"content")
    result = run(*(part.format(events=events, tmp=tmp_path) for part in command))
    assert result.exit_code == 2
    assert expected in said(result)


@pytest.mark.loopback
@pytest.mark.parametrize(
    "command",
    [
        ("replay", "--simulate", "-n", "1", "--to", "tcp://127.0.0.1:1"),
        ("record", "{tmp}/out", "--from", "tcp://127.0.0.1:1"),
        ("ctl", "status", "--to", "tcp://127.0.0.1:1"),
        ("ctl", "status", "--http", "http://127.0.0.1:1"),
        ("top", "http://127.0.0.1:1"),
    ],
    ids=lambda command: f"{command[0]} {command[-1][:4]}",
)
def test_a_node_that_is_not_running_is_reported_with_its_address(command: tuple[str, ...], tmp_path: Path) -> None:
    result = run(*(part.format(tmp=tmp_path) for part in command))
    assert result.exit_code == 2
    assert "127.0.0.1:" in said(result)
    assert "refused" in said(result)
    assert "is the node running?" in said(result)
