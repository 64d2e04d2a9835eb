"""hltnode chains: installed chains, and a broken package."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.lhcb.chain import CHAIN
from tests.daemon.commands.package_metadata import install


def chains_of() -> tuple[dict[str, dict[str, Any]], str]:
    """The JSON object by the chain's name, and the text for people."""
    as_json = CliRunner().invoke(app, ["chains", "--json", "-"])
    as_text = CliRunner().invoke(app, ["chains"])
    assert (as_json.exit_code, as_text.exit_code) == (0, 0), as_json.output + as_text.output
    return {chain["name"]: chain for chain in json.loads(as_json.stdout)["chains"]}, as_text.output


def test_a_chain_is_listed_with_its_sequences_kernels_and_tools() -> None:
    found, printed = chains_of()
    chain = found["lhcb"]
    assert (chain["package"], chain["version"]) == ("hltnode", version("hltnode"))
    assert chain["sequences"] == [CHAIN.default_sequence, *(s for s in CHAIN.sequences if s != CHAIN.default_sequence)]
    assert "baseline" in chain["kernels"]
    assert (chain["kernel_error"], chain["error"]) == ("", "")
    assert chain["tools"] == [
        *("simulation", "validation", "comparison", "display", "efficiency", "parametrisation", "channels"),
    ]
    assert f"lhcb: package hltnode {version('hltnode')}" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert "forward_then_matching" in printed


@pytest.mark.usefixtures("tiny")
def test_a_second_chain_may_have_one_sequence_and_no_tools() -> None:
    found, printed = chains_of()
    assert found["tiny"]["kernels"] == ["baseline"]
    assert found["tiny"]["tools"] == found["tiny"]["sequences"] == []
    assert (
        "tiny: package tiny 1.0\n  sequences: one, without a name\n  kernels built for: baseline\n  tools: none\n"
        in printed
    )


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("raise RuntimeError('no card')", "RuntimeError: no card"),
        ("import no_such_package", "cannot be loaded: No module named 'no_such_package'"),
        ("CHAIN = 3", "is not a TriggerChain"),
        ("CHAIN = (", "SyntaxError: '(' was never closed"),
    ],
)
def test_a_chain_that_cannot_be_imported_is_shown_with_its_error(
    module: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"broken_{abs(hash(module))}"
    (tmp_path / f"{name}.py").write_text(module)
    install(tmp_path, "broken", f"[hltnode.chains]\nbroken = {name}:CHAIN\n")
    monkeypatch.syspath_prepend(tmp_path)
    found, printed = chains_of()
    assert message in str(found["broken"]["error"])
    assert "broken: package broken 1.5\n  cannot be loaded: " in printed
    assert "Traceback" not in printed
    assert found["lhcb"]["error"] == ""


@pytest.mark.usefixtures("tiny")
def test_kernels_that_are_not_built_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chain_without_library.py").write_text(
        "from dataclasses import replace\n"
        "from tiny.chain import TINY\n"
        "CHAIN = replace(TINY, name='unbuilt', kernels=replace(TINY.kernels, library='/nowhere/kernels.so'))\n"
    )
    install(tmp_path, "unbuilt", "[hltnode.chains]\nunbuilt = chain_without_library:CHAIN\n")
    monkeypatch.syspath_prepend(tmp_path)
    found, printed = chains_of()
    assert found["unbuilt"]["kernels"] == []
    assert "/nowhere/kernels.so" in str(found["unbuilt"]["kernel_error"])
    assert "  kernels not built: the compiled kernels cannot be loaded: /nowhere/kernels.so" in printed
