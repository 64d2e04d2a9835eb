"""The CPU forms of runs, labels and features give the results of the common kernels, for every instruction set."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.components.find_runs import find_runs
from hltnode.processing.imaging.components.label_runs import label_runs
from hltnode.processing.imaging.components.measure_components import measure_components
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.imaging.chain_under_test import reference
from tests.processing.imaging.image_events import labelling

LIBRARY = KernelLibrary(CHAIN.kernels)
launch = partial(on_cpu, kernels=CHAIN.kernels)


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_both_forms_give_the_same_runs_labels_and_features(target: str) -> None:
    # Widths around two words of 64 pixels; grey images have values of 0 to 255.
    images = reference(3, 12, 122)
    for diagonal, threshold in ((1, 1), (0, 1), (1, 0), (1, 128), (0, 255), (1, 256)):
        trigger = TriggerConfig.from_toml(labelling(diagonal=diagonal, threshold=threshold), CHAIN.menu)
        algorithms = tuple(trigger.configure(images.sequence))
        form, common = (
            run_algorithms(algorithms, images.given, images.n_events, images.limits, launch(target, common=common))
            for common in (False, True)
        )
        for name in images.made:
            np.testing.assert_array_equal(form[name], common[name], err_msg=f"{name}, {diagonal}, {threshold}")
        # The reference is 8-connected from 1 on, by the forms for the CPU.
        same = form["runs.label"].tobytes() == images.made["runs.label"]
        assert same == ((diagonal, threshold) == (1, 1))


def test_the_library_has_both_forms() -> None:
    for target in LIBRARY.targets:
        for each in (find_runs, label_runs, measure_components):
            assert LIBRARY.address(target, each.name) != LIBRARY.address(target, each.name, common=True)
