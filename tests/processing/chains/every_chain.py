"""Every chain of this tree with its test data, for tests that loop over chains."""

from __future__ import annotations

import importlib

from tests.processing.chains.chain_under_test import ChainUnderTest
from tools.chains_of_this_tree import chains_of_this_tree


def chains_under_test() -> dict[str, ChainUnderTest]:
    """Every chain of this tree, by name, from the module tests/processing/<its folder>/chain_under_test.py.

    Raises ModuleNotFoundError for a chain that has no such module.
    """
    folders = {name: chain.source.parent.name for name, chain in chains_of_this_tree().items()}
    modules = {name: f"tests.processing.{folder}.chain_under_test" for name, folder in folders.items()}
    return {name: importlib.import_module(module).CHAIN_UNDER_TEST for name, module in modules.items()}


CHAINS = chains_under_test()
