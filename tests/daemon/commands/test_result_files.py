"""No command overwrites a result without --force, and `--json -` writes nothing but JSON to standard output."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app, command_names, import_command
from hltnode.daemon.commands import common
from hltnode.daemon.commands.common import complete_file
from hltnode.daemon.commands.result_files import CHECKS, ResultParser, require_new

ROOT = Path(common.__file__).parents[2]
READS = {
    "--geometry", "--trigger", "--config", "--tck", "--compare", "--against", "--check", "--reference",
    "--field", "--input-hepmc", "--server-key", "--key-file", "--token-file", "--conditions",
    "--schema", "--data", "--secret-key", "--nodes-dir", "--operators-dir",
    "--measurement", "--minbias", "--signal", "--muon-trees",
}  # fmt: skip
"""Options with paths that commands only read."""
FOLDERS = {
    "demo --output": "the node names its files by session",
    "farm up --directory": "the folder must be new or empty",
    "farm size --directory": "the command checks the files in the folder",
    "parametrise --output": "the command checks the file in the folder",
    "replay --memory": "the file of assignments is continued",
}
"""Options with paths that are written and not named by the option, and why they cannot overwrite a result."""
WRITERS = {"write_text", "write_bytes"}
UNCHECKED_WRITERS = {
    ("common.py", "write_text"): "checked by the option",
    ("demo.py", "run_demo"): "a temporary folder",
    ("stream_demo.py", "run_stream_demo"): "a temporary folder",
    ("stream_demo.py", "_send"): "a temporary folder",
    ("monitoring.py", "write_configuration"): "a new or empty folder",
    ("nodes.py", "configure"): "a new or empty folder",
    ("running.py", "_write_addresses"): "a new or empty folder",
}


def commands() -> Iterator[tuple[str, Any]]:
    for name in command_names():
        command = import_command(name)
        of_group = getattr(command, "commands", None)
        if of_group is None:
            yield name, command
        else:
            yield from ((f"{name} {part}", each) for part, each in of_group.items())


def is_checked(parameter: Any) -> bool:
    return getattr(parameter.callback, "__wrapped__", None) in CHECKS


def path_options() -> Iterator[tuple[str, Any]]:
    for name, command in commands():
        for parameter in command.params:
            if parameter.param_type_name == "option" and "path" in repr(parameter.type_descriptor).lower():
                yield name, parameter


RESULTS = [
    (name, next(option for option in parameter.opts if option.startswith("--")))
    for name, parameter in path_options()
    if is_checked(parameter)
]


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_every_option_with_a_path_is_a_result_or_is_known_to_be_read() -> None:
    unknown = [
        f"{name} {option}"
        for name, parameter in path_options()
        if not is_checked(parameter)
        for option in parameter.opts
        if option.startswith("--") and option not in READS and f"{name} {option}" not in FOLDERS
    ]
    assert not unknown, "declare them with result_file, or add them to READS"


def test_the_results_of_all_commands_are_found() -> None:
    expected = {
        "simulate --output", "display --output", "compare --output", "tck export --output", "process --accepted",
        "process --histograms", "process --tuple", "rates --report", "efficiency --report", "validate --report",
    }  # fmt: skip
    with_json = {
        "chains", "compare", "demo", "doctor", "efficiency", "histograms", "inspect", "lines", "process",
        "rates", "record", "replay", "replay-check", "serve", "simulate", "validate",
    }  # fmt: skip
    assert {f"{name} {option}" for name, option in RESULTS} >= expected | {f"{name} --json" for name in with_json}


@pytest.mark.parametrize(("name", "option"), RESULTS, ids=[" ".join(each) for each in RESULTS])
def test_an_existing_result_is_refused_before_anything_else_is_read(name: str, option: str, tmp_path: Path) -> None:
    path = tmp_path / "result.html"
    path.write_text("an hour of work")
    result = run(*name.split(), option, path)
    assert result.exit_code == 2
    assert result.output.splitlines() == [f"error: {path}: the file exists; --force overwrites it"]
    assert path.read_text() == "an hour of work"
    # With --force, behind or before it, the file is no error: the next check is that of the other arguments.
    for arguments in ((option, path, "--force", "--none"), ("--force", option, path, "--none")):
        result = run(*name.split(), *arguments)
        assert "the file exists" not in result.output
        assert "No such option: --none" in " ".join(result.output.split())


def test_force_belongs_to_commands_with_results_only() -> None:
    forced = {name for name, command in commands() if any("--force" in each.opts for each in command.params)}
    assert forced == {name for name, _ in RESULTS} | {"parametrise"}


def test_force_overwrites_and_ends_with_its_command(tmp_path: Path) -> None:
    path = tmp_path / "lines.json"
    assert run("lines", "--json", path).exit_code == 0
    written = path.read_text()
    path.write_text("old")
    assert run("lines", "--json", path).exit_code == 2
    assert run("lines", "--json", path, "--force").exit_code == 0
    assert path.read_text() == written
    assert run("lines", "--json", path).exit_code == 2


def test_a_name_that_a_command_chooses_is_checked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("tck", "export").exit_code == 0
    (document,) = tmp_path.iterdir()
    result = run("tck", "export")
    assert result.exit_code == 2
    assert f"error: {document.name}: the file exists; --force overwrites it" in " ".join(result.output.split())
    assert run("tck", "export", "--force").exit_code == 0


@pytest.mark.parametrize("command", [["lines"], ["lines", "--fields"], ["inspect", "--plan"], ["chains"]])
def test_standard_output_holds_nothing_but_json(command: list[str]) -> None:
    text = run(*command).stdout
    result = run(*command, "--json", "-")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)
    assert result.stderr == text, "text for people goes to standard error"
    assert run(*command).stdout == text, "and back to standard output in the next command"


def test_devices_and_pipes_are_not_overwritten(tmp_path: Path) -> None:
    require_new(Path("/dev/null"), tmp_path / "none", None)
    with complete_file(Path("/dev/null")) as file:
        file.write(b"nothing")
    assert Path("/dev/null").is_char_device()


def test_programs_of_the_repository_have_the_same_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "figures.json"
    parser = ResultParser(prog="benchmarks")
    parser.add_result_file("--json", help="figures")
    assert parser.parse_args(["--json", str(path)]).json == path
    path.write_text("figures of a night")
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--json", str(path)])
    assert ended.value.code == 2
    assert f"{path}: the file exists; --force overwrites it" in capsys.readouterr().err
    assert parser.parse_args(["--force", "--json", str(path)]).json == path


def test_commands_write_files_by_the_checked_functions_only() -> None:
    found = set()
    for file in sorted((ROOT / "daemon" / "commands").rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
                if any(isinstance(call, ast.Attribute) and call.attr in WRITERS for call in calls):
                    found.add((file.name, function.name))
    assert found == set(UNCHECKED_WRITERS)
