"""Where log lines are JSON, the reason of a start that failed is one, too."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest
import structlog
import typer

from hltnode.daemon.commands.node.start_errors import FORMAT_VARIABLE, JOURNAL_VARIABLE, json_errors, logs_json
from hltnode.daemon.configuration.loading import ConfigError

JSON = '[log]\nformat = "json"\n'
CONSOLE = '[log]\nformat = "console"\n'


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(FORMAT_VARIABLE, raising=False)
    monkeypatch.delenv(JOURNAL_VARIABLE, raising=False)
    yield
    structlog.reset_defaults()


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "node.toml"
    path.write_text(text)
    return path


def last_line(config: Path, error: Exception) -> tuple[int, dict[str, Any]]:
    """Exit code and log line of an error."""
    stream = io.StringIO()
    with redirect_stderr(stream), pytest.raises(typer.Exit) as exit_, json_errors(config):
        raise error
    [line] = stream.getvalue().splitlines()
    return exit_.value.exit_code, json.loads(line)


def test_an_error_that_a_user_can_correct_is_one_line_with_exit_code_2(tmp_path: Path) -> None:
    code, line = last_line(written(tmp_path, JSON), ConfigError("node.toml: http.port: expected a number"))
    assert (code, line["level"], line["event"]) == (2, "critical", "not_started")
    assert line["error"] == "node.toml: http.port: expected a number"


def test_a_crash_is_one_line_with_its_traceback_and_exit_code_1(tmp_path: Path) -> None:
    code, line = last_line(written(tmp_path, JSON), KeyError("lost"))
    assert (code, line["event"], line["error"]) == (1, "crashed", "KeyError('lost')")
    assert "Traceback" in line["exception"]


def test_without_json_lines_the_commands_print_the_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), json_errors(written(tmp_path, CONSOLE)):
        raise KeyError("lost")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_error_is_for_people_although_the_log_is_json(tmp_path: Path) -> None:
    stream = Terminal()
    with redirect_stderr(stream), pytest.raises(ConfigError), json_errors(written(tmp_path, JSON)):
        raise ConfigError("node.toml: http.port: expected a number")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        (JSON, {}, True),
        (CONSOLE, {}, False),
        ("", {}, False),
        ("", {JOURNAL_VARIABLE: "8:1"}, True),
        ("[log", {}, False),
        ("[log", {JOURNAL_VARIABLE: "8:1"}, True),
        ("log = 3", {JOURNAL_VARIABLE: "8:1"}, True),
        (CONSOLE, {JOURNAL_VARIABLE: "8:1"}, False),
        (CONSOLE, {FORMAT_VARIABLE: "json"}, True),
        (JSON, {FORMAT_VARIABLE: "console"}, False),
    ],
)
def test_environment_file_or_journal_decide_the_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, environment: dict[str, str], expected: bool
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert logs_json(written(tmp_path, text)) is expected


def test_a_missing_file_is_a_json_line_in_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JOURNAL_VARIABLE, "8:1")
    assert logs_json(Path("nowhere/node.toml"))


def lines_of_serve(config: Path) -> list[dict[str, Any]]:
    """All log lines of a node that fails to start, each decoded from JSON."""
    ended = subprocess.run(
        [sys.executable, "-m", "hltnode.daemon", "serve", "--config", str(config)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, JOURNAL_VARIABLE: "8:1"},
    )
    assert ended.returncode == 2, ended.stderr
    return [json.loads(line) for line in ended.stderr.splitlines()]


@pytest.mark.process
@pytest.mark.timeout(120)
def test_an_unknown_key_is_the_only_log_line_of_the_node(tmp_path: Path) -> None:
    [line] = lines_of_serve(written(tmp_path, JSON + "[http]\nprot = 9105\n"))
    assert line["event"] == "not_started"
    assert "http.prot: unknown key" in line["error"]


@pytest.mark.process
@pytest.mark.loopback
@pytest.mark.timeout(120)
def test_a_port_in_use_is_the_last_log_line_of_the_node(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = f'data = "tcp://127.0.0.1:{taken.getsockname()[1]}"\ncontrol = "tcp://127.0.0.1:*"\n'
        small = '[pipeline]\nslot_bytes = 33554432\nbackend = "cpu"\n[trigger]\nfile = "trigger.toml"\n'
        small = small.replace("trigger.toml", str(tmp_path / "trigger.toml"))
        (tmp_path / "trigger.toml").write_text('[sequence]\nname = "velo"\n')
        output = f'[output]\ndirectory = "{tmp_path / "out"}"\n'
        decisions = 'decisions = "tcp://127.0.0.1:*"\n'
        config = written(tmp_path, f"{JSON}[network]\n{ports}{decisions}{small}{output}")
        lines = lines_of_serve(config)
    assert lines[-1]["event"] == "not_started"
    assert "Address already in use" in lines[-1]["error"] or "address" in lines[-1]["error"].lower()
