"""A command imports what it uses: libraries that take a second are left to the commands that need them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hltnode.protocol import RawBank, encode_bank, encode_odin
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.odin import Odin

pytestmark = pytest.mark.process

COMMAND_LINE = {"pydantic", "numpy", "rich.console", "zmq", "asyncio", "importlib.metadata", "uproot", "awkward"}
"""`--help` needs none of them: pydantic and importlib.metadata took more than half of its time."""
SELECTION = {
    "hltnode.processing.lhcb.chain",
    "hltnode.processing.selection.trigger_chain",
    "hltnode.processing.framework.engine",
    "hltnode.daemon.configuration.model",
    "hltnode.daemon.output.event_encoder",
    "pydantic_settings",
}
"""A file without banks of the trigger is shown without them: they took half of the time of `inspect`."""


def at_the_end_of(expression: str, folder: Path, *arguments: str) -> Any:
    """The value of an expression at the end of a command."""
    result = folder / "result.json"
    program = (
        "import atexit, gc, json, sys\n"
        f"atexit.register(lambda: open({str(result)!r}, 'w').write(json.dumps({expression})))\n"
        f"sys.argv = ['hltnode', *{list(arguments)!r}]\n"
        "from hltnode.daemon.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(result.read_text())


def imported_by(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command has imported at its end."""
    return set(at_the_end_of("sorted(sys.modules)", folder, *arguments))


@pytest.mark.parametrize(
    ("arguments", "of_the_work"),
    [
        (("--help",), COMMAND_LINE),
        (("process", "--help"), COMMAND_LINE),
        (("inspect", "--help"), {"pydantic", "rich.console"} | SELECTION),
    ],
    ids=["hltnode", "process", "inspect"],
)
def test_the_help_of_a_command_imports_no_library_of_its_work(
    arguments: tuple[str, ...], of_the_work: set[str], tmp_path: Path
) -> None:
    imported = imported_by(tmp_path, *arguments)
    assert "typer.core" in imported
    assert not sorted(imported & of_the_work)


def test_inspect_imports_no_selection_for_events_without_its_banks(tmp_path: Path) -> None:
    banks = encode_bank(encode_odin(Odin(run=7, event_id=1))) + encode_bank(RawBank(63, 2, 1, memoryview(b"hits")))
    events = tmp_path / "events.mdf"
    events.write_bytes(encode_record(banks, run=7))
    imported = imported_by(tmp_path, "inspect", str(events))
    assert "hltnode.processing.lhcb.readout" in imported
    assert not sorted(imported & SELECTION)


def test_inspect_imports_the_chain_for_the_names_of_lines(tmp_path: Path) -> None:
    """Otherwise the names of SELECTION would be wrong, and the test above would find nothing."""
    assert imported_by(tmp_path, "inspect", "--plan") >= SELECTION - {"hltnode.daemon.output.event_encoder"}


def test_a_command_collects_garbage_but_not_among_what_its_imports_made(tmp_path: Path) -> None:
    is_enabled, frozen = at_the_end_of("[gc.isenabled(), gc.get_freeze_count()]", tmp_path, "chains")
    assert is_enabled
    assert frozen > 10_000
