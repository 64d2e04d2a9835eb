"""The CPU forms of fit and search give the results of the common kernels bit by bit, for every instruction set."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.na62.chain import CHAIN
from hltnode.processing.na62.rich.fit_ring import fit_ring
from hltnode.processing.na62.rich.search_rings import search_rings
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.na62.chain_under_test import reference

LIBRARY = KernelLibrary(CHAIN.kernels)
launch = partial(on_cpu, kernels=CHAIN.kernels)
SETTINGS = {
    "single_ring": [f"[sequence.rich_fit_ring]\nmethod = {method}\n" for method in range(3)],
    "several_rings": [
        "",
        "[sequence.rich_search_rings]\ntriplets = 4\nmethod = 0\nmax_skipped = 2\n",
        "[sequence.rich_search_rings]\nmethod = 2\nmin_hits = 3\ntolerance = 0.05\nmin_radius = 1.0\nrefits = 0\n",
        # One refit, with the first window: its ring is not that of the last fit, even if its hits stay the same.
        "[sequence.rich_search_rings]\nrefits = 1\n",
        "[sequence.rich_search_rings]\nrefits = 2\nwindow = 4.0\nmin_hits = 5\n",
    ],
}


@pytest.mark.parametrize("sequence", SETTINGS)
def test_both_forms_find_the_same_rings(sequence: str) -> None:
    events = reference(31, 61, sequence)
    for target in LIBRARY.targets:
        for settings in SETTINGS[sequence]:
            text = f'[sequence]\nname = "{sequence}"\n{settings}'
            algorithms = tuple(TriggerConfig.from_toml(text, CHAIN.menu).configure(events.sequence))
            form, common = (
                run_algorithms(algorithms, events.given, events.n_events, events.limits, launch(target, common=common))
                for common in (False, True)
            )
            assert form["rings.count"].sum() > 40
            for name in events.made:
                np.testing.assert_array_equal(form[name], common[name], err_msg=f"{name}, {target}, {settings}")


def test_the_library_has_both_forms() -> None:
    for target in LIBRARY.targets:
        for each in (fit_ring, search_rings):
            assert LIBRARY.address(target, each.name) != LIBRARY.address(target, each.name, common=True)
