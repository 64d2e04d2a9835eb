"""The CPU forms give the results of the common kernels bit by bit, for every instruction set."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.km3net.hits.collections import MAX_CANDIDATES, MAX_HITS, MAX_WINDOWS
from hltnode.processing.km3net.hits.sort_hits import sort_hits
from hltnode.processing.km3net.triggers.find_candidates import find_candidates
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from tests.processing.chains.reference import run_reference
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.km3net.chain_under_test import odd_mep
from tests.processing.km3net.telescope_events import COLUMNS, made_hits, mep_of_hits

LIBRARY = KernelLibrary(CHAIN.kernels)
launch = partial(on_cpu, kernels=CHAIN.kernels)
SETTINGS = (
    "",
    "[sequence.km3net_sort_hits]\ntime_window = 1000\n"
    "[sequence.km3net_find_candidates]\ntime_window = 1000\nmin_hits = 3\npadding = 100\nmin_causal = 4\n",
)

PLACED = (
    ("km3net_hits.hit", MAX_HITS, "km3net_hits.count"),
    ("candidates.candidate", MAX_CANDIDATES, "candidates.count"),
    ("windows.window", MAX_WINDOWS, "windows.count"),
)


def dense_mep(seed: int) -> EncodedMep:
    """Sub-slices of up to 1,000 hits in which most hits begin a candidate, in few PMTs and in all; and bursts of more
    than 64 hits with gaps between them, so that the hits of a window are 64 places behind those of another one."""
    rng = np.random.default_rng(seed)
    made = [made_hits([])]
    for n, pmts in ((300, 84), (700, 84), (950, 12), (500, 3)):
        made.append(made_hits(list(zip(rng.integers(0, pmts, n), rng.integers(0, 25_000, n), strict=True))))
    bursts = [3_000 * (i // 90) + 4 * (i % 90) for i in range(630)]
    made.append(made_hits(list(zip(rng.integers(0, 84, 630), bursts, strict=True))))
    return mep_of_hits([*made, made_hits([])], 5)


@pytest.mark.parametrize("mep", [odd_mep(31, 20), dense_mep(32)], ids=["usual", "dense"])
def test_both_forms_find_the_same_candidates_for_every_instruction_set(mep: EncodedMep) -> None:
    events = run_reference(CHAIN, mep, CHAIN.load_geometry(None), None, COLUMNS)
    for settings in SETTINGS:
        algorithms = tuple(TriggerConfig.from_toml(settings, CHAIN.menu).configure(events.sequence))
        of_targets = [
            run_algorithms(algorithms, events.given, events.n_events, events.limits, launch(target, common=common))
            for target in LIBRARY.targets
            for common in (False, True)
        ]
        common = of_targets[-1]
        assert common["candidates.count"].sum() > 40
        for form in of_targets[:-1]:
            for name, most, count in PLACED:
                used = np.arange(most) < form[count][: events.n_events, None]
                one, other = (each[name].reshape(-1, most)[used] for each in (form, common))
                np.testing.assert_array_equal(one, other, err_msg=name)
            for name in ("km3net_hits.count", "km3net_hits.own", "candidates.count", "windows.count", "events.flags"):
                np.testing.assert_array_equal(form[name], common[name], err_msg=name)


def test_the_library_has_both_forms() -> None:
    for target in LIBRARY.targets:
        for each in (sort_hits, find_candidates):
            assert LIBRARY.address(target, each.name) != LIBRARY.address(target, each.name, common=True)
