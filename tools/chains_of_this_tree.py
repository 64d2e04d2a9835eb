"""The chains that live in this tree: generators and tests loop over them, so that a new chain edits no list."""

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

from hltnode.processing.selection.trigger_chain import ENTRY_POINTS, TriggerChain

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def chains_of_this_tree() -> dict[str, TriggerChain]:
    """By name, as pyproject.toml declares their entry points; a chain needs no build to be listed."""
    declared = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["entry-points"][ENTRY_POINTS]
    chains = {name: EntryPoint(name, value, ENTRY_POINTS).load() for name, value in sorted(declared.items())}
    for name, chain in chains.items():
        if not isinstance(chain, TriggerChain):
            raise TypeError(f"entry point {name}: {declared[name]} is no TriggerChain")
    return chains
