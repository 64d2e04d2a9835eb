"""Commands with tools of a chain: the default chain, a second chain, and a chain without tools."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from hltnode.client.sockets import FeederKeys
from hltnode.daemon.cli import app
from hltnode.daemon.commands.mep_streams.replay_setup import ReplayOptions, make_streams
from hltnode.daemon.commands.tool_command import chain_named_in
from hltnode.daemon.replay.pacing import parse_rate
from hltnode.processing.offline.chain_tools import ChainTools, installed_tools
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from tests.daemon.commands import tiny_tools
from tests.daemon.commands.package_metadata import install

COMMANDS = {
    "simulate": ("simulation", ["-n", "1", "-o", "x.mdf"]),
    "demo": ("simulation", ["-n", "1"]),
    "validate": ("validation", ["x.mdf"]),
    "compare": ("comparison", ["x.mdf", "y.mdf", "-o", "z.html"]),
    "display": ("display", ["x.mdf", "-o", "z.html"]),
    "efficiency": ("efficiency", ["x.mdf"]),
    "parametrise": ("parametrisation", []),
    "replay": ("simulation", ["--simulate", "--to", "tcp://127.0.0.1:1"]),
}


def run(*arguments: str | Path) -> tuple[int, str]:
    """Exit code and output, with single spaces."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture
def with_tools(tiny: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny chain with a package that offers a simulation for it."""
    install(tmp_path, "tiny-tools", f"[hltnode.chain_tools]\ntiny = {tiny_tools.__name__}:TOOLS\n")
    monkeypatch.setattr(tiny_tools, "SOURCES", tiny.SOURCES)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("tiny")
def test_a_missing_tool_of_a_chain_is_one_line(command: str) -> None:
    tool, arguments = COMMANDS[command]
    result = CliRunner().invoke(app, [command, *arguments, "--chain", "tiny"])
    assert result.exit_code == 2
    assert result.output == (
        f"error: chain tiny has no {tool}: its package offers none under the entry point group hltnode.chain_tools\n"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_chain_is_reported_by_name(command: str) -> None:
    code, output = run(command, *COMMANDS[command][1], "--chain=nowhere")
    assert (code, output.count("error:")) == (2, 1)
    assert "no chain named 'nowhere': installed are" in output


def test_a_chain_adds_its_own_options(with_tools: Path) -> None:
    file, report = with_tools / "x.mdf", with_tools / "x.json"
    code, output = run(
        *("simulate", "--chain", "tiny", "-n", "20", "--most-hits", "3", "-o", file, "--json", report, "--jobs", "2")
    )
    assert code == 0, output
    made = json.loads(report.read_text())
    assert (made["events"], made["most_hits"], made["bytes"]) == (20, 3, file.stat().st_size)
    found = with_tools / "found.json"
    code, output = run("process", file, "--chain", "tiny", "--backend", "cpu", "--threads", "1", "--json", found)
    assert code == 0, output
    hits = [event["hits"] for event in json.loads(found.read_text())["per_event"]]
    assert hits == [n for n, _ in tiny_tools.numbers_of_hits(seed=1, n=20, most=3)]
    assert max(hits) > 0
    # This package offers no readout of its own, so that the chain is imported.
    code, output = run("inspect", file, "--chain", "tiny")
    assert code == 0, output
    assert f"type {int(LhcbBankType.TEST_DET)}" in output  # LHCb's readout has a name for it


def test_help_shows_the_options_of_the_chain(with_tools: Path) -> None:
    of_tiny, of_default = run("simulate", "--help", "--chain", "tiny"), run("simulate", "--help")
    assert of_tiny[0] == of_default[0] == 0
    assert "--most-hits" in of_tiny[1]
    assert "Options added by chain tiny: --most-hits." in of_tiny[1]
    assert "--velo-banks" not in of_tiny[1]
    assert "--velo-banks" in of_default[1]
    assert "--most-hits" not in of_default[1]
    # The second example has an option of the default chain.
    examples = [" ".join(text.partition("Example")[2].split()) for text in (of_tiny[1], of_default[1])]
    assert examples[0].startswith(": hltnode simulate -n 2000 --seed 1 -o minbias.mdf --chain tiny Options added")
    assert "--enrich --cached" in examples[1]
    code, output = run("simulate", "-n", "1", "-o", with_tools / "x.mdf", "--most-hits", "3")
    assert (code, "No such option: --most-hits" in output) == (2, True)


@pytest.mark.parametrize(
    ("options", "word"), [(tiny_tools.ClashingField, "seed"), (tiny_tools.ClashingOption, "--jobs")]
)
def test_a_chain_option_with_the_name_of_a_command_option_is_refused(
    options: type, word: str, with_tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny_tools.TinySimulation, "options", options)
    code, output = run("simulate", "--chain", "tiny", "-n", "1", "-o", with_tools / "x.mdf")
    assert code == 2
    assert f"chain 'tiny': its tool declares {word}, which is already an option of the command" in output


def test_a_tool_that_cannot_be_imported_is_named(with_tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny_tools.TinySimulation, "__init__", tiny_tools.import_a_missing_library)
    code, output = run("simulate", "--chain", "tiny", "-n", "1", "-o", with_tools / "x.mdf")
    assert code == 2
    assert "chain tiny: its simulation cannot be imported: No module named 'no_such_library'" in output


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("json:dumps", "chain 'tiny': json:dumps is no ChainTools"),
        ("no_such_package:TOOLS", "chain 'tiny': no_such_package:TOOLS cannot be loaded"),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_an_entry_point_that_offers_no_tools_is_named(
    value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "broken", f"[hltnode.chain_tools]\ntiny = {value}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=message):
        installed_tools("tiny")


def test_two_packages_with_tools_of_one_chain_are_refused(with_tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = with_tools / "other"
    other.mkdir()
    install(other, "more-tools", "[hltnode.chain_tools]\ntiny = somewhere:TOOLS\n")
    monkeypatch.syspath_prepend(other)
    with pytest.raises(ValueError, match=r"'tiny'.*more-tools.*tiny-tools"):
        installed_tools("tiny")


def test_the_default_chain_has_every_tool() -> None:
    tools = installed_tools("lhcb")
    # Only streaming chains have a rate of a stream.
    for name in set(ChainTools.__dataclass_fields__) - {"sends_datagrams", "stream_rate"}:
        assert getattr(tools, name)() is not None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], None),
        (["-n", "3", "--chain", "tiny", "-o", "x"], "tiny"),
        (["--chain=tiny", "x"], "tiny"),
        (["--chain=tiny", "--chain", "lhcb"], "lhcb"),
        (["--chain"], None),
        (["--", "--chain", "tiny"], None),
    ],
)
def test_the_chain_is_read_from_the_command_line(arguments: list[str], expected: str | None) -> None:
    assert chain_named_in(arguments) == expected


def test_a_node_imports_no_tools_of_a_chain() -> None:
    code = (
        "import sys; from hltnode.daemon.commands.node import serving, doctor, config; "
        "from hltnode.daemon.node import node; from hltnode.processing.selection.trigger_chain import installed_chain; "
        "chain = installed_chain('lhcb'); chain.with_lines(chain.load_trigger(None)); chain.load_geometry(None); "
        "print([name for name in sys.modules if '.lhcb.offline' in name or name.endswith('.chain_tools')])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    ).stdout
    assert printed.strip() == "[]"


def test_a_node_that_draws_events_imports_only_the_display() -> None:
    code = (
        "import sys; from importlib import import_module; "
        "from hltnode.processing.selection.trigger_chain import installed_chain; "
        "import_module(installed_chain('lhcb').display); "
        "print([name for name in sys.modules if '.lhcb.offline.' in name and '.lhcb.offline.display' not in name])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    ).stdout
    assert printed.strip() == "[]"


def test_one_tool_imports_no_other() -> None:
    code = (
        "import sys; from hltnode.processing.offline.chain_tools import installed_tools; "
        "installed_tools('lhcb').simulation(); "
        "print([name for name in sys.modules if '.lhcb.offline.' in name and "
        "('.validation' in name or '.display' in name)], 'matplotlib' in sys.modules)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    ).stdout
    assert printed.strip() == "[] False"


@pytest.mark.usefixtures("with_tools")
def test_simulated_events_of_a_second_chain_are_replayed(tiny: ModuleType) -> None:
    options = ReplayOptions(
        inputs=(),
        n_simulated=5,
        seed=1,
        geometry=None,
        chain="tiny",
        events_per_mep=2,
        repeat=1,
        run=None,
        with_truth=False,
        to=("tcp://127.0.0.1:1",),
        control=None,
        keys=FeederKeys(None, False),
        supervisor=None,
        memory=None,
        name="feeder",
        connections=1,
        part=None,
        rate=parse_rate("greatest"),
        max_pause_s=60.0,
        faults=None,
        segment_bytes=1 << 20,
    )
    [stream] = make_streams(options)
    assert (stream.sources, stream.n_events, len(list(stream))) == (tuple(sorted(tiny.SOURCES)), 5, 3)
