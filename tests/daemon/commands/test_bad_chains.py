"""A chain with a fault is named when a command or a node starts: one line, exit code 2."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.raw.chain import CHAIN as RAW
from tests.daemon.commands.package_metadata import install

MODULE = """
from dataclasses import replace
from hltnode.processing.selection.lines.line import selection_types
from tiny.chain import TINY
from tiny import count_hits
from tiny.count_hits import event_number
"""
KERNELS = "CHAIN = replace(TINY, name={name!r}, kernels=replace(TINY.kernels, library={library!r}))"
FAULTS = {
    "raises": ("raise RuntimeError('no card')", "'raises': raises_chain:CHAIN cannot be loaded: RuntimeError: no card"),
    "absent": ("import no_such_package", "'absent': absent_chain:CHAIN cannot be loaded: No module named"),
    "open": ("CHAIN = (", "chain 'open': open_chain:CHAIN cannot be loaded: SyntaxError: '(' was never closed"),
    "number": ("CHAIN = 3", "chain 'number': number_chain:CHAIN is not a TriggerChain"),
    "renamed": ("CHAIN = TINY", "chain 'renamed': renamed_chain:CHAIN has the name 'tiny', expected the same name"),
    "declared": (
        "CHAIN = replace(TINY, name='declared', counts={'numbers': event_number})",
        "DeclarationError: chain declared delivers events.number, which is not an output per event",
    ),
    "headers": (
        "from hltnode.processing.framework.collections import SharedTypes\n"
        "types = SharedTypes(count_hits.__file__, 'tiny_types', sizes={'listed_hits': 51})\n"
        "CHAIN = replace(TINY, name='headers', types=(selection_types, types))",
        "chain headers: generated headers are out of date: tiny_types.h; write them with make headers, or with "
        "hltnode.processing.framework.device_headers, and build again",
    ),
    "unbuilt": (
        KERNELS.format(name="unbuilt", library="tiny._no_kernels"),
        "the compiled kernels tiny._no_kernels are missing: install the package of the chain again (pip install .",
    ),
    "lost": (KERNELS.format(name="lost", library="/nowhere/kernels.so"), "kernels cannot be loaded: /nowhere/"),
}
"""The module of each chain, and what the message has."""


def started(command: str, chain: str, folder: Path) -> str:
    """What a command says that ends with exit code 2."""
    file = folder / "events.mdf"
    file.touch()
    config = folder / "node.toml"
    config.write_text(
        f'[trigger]\nchain = "{chain}"\n[pipeline]\nbackend = "cpu"\n[output]\ndirectory = "{folder}/out"\n'
    )
    arguments = {"serve": ["--config", str(config)], "process": [str(file), "--chain", chain, "--backend", "cpu"]}
    done = CliRunner().invoke(app, [command, *arguments[command]])
    assert done.exit_code == 2, (chain, done.output)
    (line,) = [line for line in done.stderr.splitlines() if '"level": "info"' not in line]
    assert "Traceback" not in line
    return line


@pytest.mark.parametrize("command", ["process", "serve"])
def test_each_fault_of_a_chain_is_one_line_at_the_start(
    command: str, tiny: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path(str(KernelLibrary(RAW.kernels)._library._name))
    foreign = (
        KERNELS.format(name="foreign", library=str(other)),
        f"the compiled kernels in {other} were built from other",
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name, (text, message) in {**FAULTS, "foreign": foreign}.items():
        (tmp_path / f"{name}_chain.py").write_text(MODULE + text)
        install(tmp_path, name, f"[hltnode.chains]\n{name} = {name}_chain:CHAIN\n")
        sys.modules.pop(f"{name}_chain", None)
        assert message in started(command, name, tmp_path)
    install(tmp_path, "second", "[hltnode.chains]\nnumber = other_chain:CHAIN\n")
    shared = "chain 'number' is offered by 2 packages: number (number_chain:CHAIN), second (other_chain:CHAIN)"
    assert shared in started(command, "number", tmp_path)
