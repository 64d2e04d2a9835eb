"""The CPU form of the labelling gives the results of the common kernel, for every instruction set."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.components.label_runs import label_runs
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.imaging.chain_under_test import reference

LIBRARY = KernelLibrary(CHAIN.kernels)
launch = partial(on_cpu, kernels=CHAIN.kernels)


@pytest.mark.parametrize("target", LIBRARY.targets)
@pytest.mark.parametrize("diagonal", [0, 1])
def test_both_forms_give_the_same_labels_and_features(target: str, diagonal: int) -> None:
    images = reference(3, 12, 60)
    trigger = TriggerConfig.from_toml(f"[sequence.ccl_label_runs]\ndiagonal = {diagonal}\n", CHAIN.menu)
    algorithms = tuple(trigger.configure(images.sequence))
    form, common = (
        run_algorithms(algorithms, images.given, images.n_events, images.limits, launch(target, common=common))
        for common in (False, True)
    )
    for name in images.made:
        np.testing.assert_array_equal(form[name], common[name], err_msg=name)
    # The reference is 8-connected, by the form for the CPU.
    assert (form["runs.label"].tobytes() == images.made["runs.label"]) == (diagonal == 1)


def test_the_library_has_both_forms() -> None:
    for target in LIBRARY.targets:
        assert LIBRARY.address(target, label_runs.name) != LIBRARY.address(target, label_runs.name, common=True)
