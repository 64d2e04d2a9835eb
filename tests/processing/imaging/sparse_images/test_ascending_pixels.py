"""Lists in raster order have the components of their images, also where the CPU form without a table ends."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.offline.simulation.shapes import random_cells
from hltnode.processing.imaging.pixel_lists import encode_pixels, pixels_of
from hltnode.processing.imaging.strips import MAX_SIDE
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from tests.processing.chains.reference import run_reference
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.imaging.component_oracle import expected_labels, in_raster_order
from tests.processing.imaging.sparse_images.sparse_events import (
    COLUMNS,
    SEQUENCE,
    label_pixel_lists,
    sparse_labelling,
)

LIBRARY = KernelLibrary(CHAIN.kernels)


def two_rows(apart: int, above: int, own: int) -> NDArray[np.bool_]:
    """A row of single pixels, and a pixel below one of them, `apart` places later in the list: a row below has the
    others. `above`, `own`: columns of the two pixels."""
    image = np.zeros((3, 400), np.bool_)
    image[0, above] = True
    # Pixels of the first row behind this one, none of which touches the other.
    image[0, above + 3 : above + 3 + 2 * (apart - 1) : 2] = True
    image[1, own] = True
    image[2, :40:2] = True
    return image


def sparse_images() -> list[NDArray[np.bool_]]:
    """Images of few pixels and many, of all neighbours at all distances in the list, and of pixels at both edges."""
    made = [two_rows(apart, 5, own) for apart in range(1, 70) for own in (3, 4, 5, 6)]
    made += [random_cells(768, 256, density, 1, (7,)) for density in (0.01, 0.03, 0.08, 0.3)]
    made += [random_cells(97, 40, 0.1, 1 + i % 2, (8, i)) for i in range(20)]
    made += [random_cells(7, n, 0.4, 1, (9, n)) for n in range(1, 12)]
    edges = np.zeros((30, MAX_SIDE), np.bool_)
    edges[:, 0] = edges[::2, -1] = True
    return [*made, edges]


IMAGES = sparse_images()
LISTS = [(pixels_of(image), image.shape[1], image.shape[0]) for image in IMAGES]


@pytest.mark.parametrize("diagonal", [1, 0], ids=["8", "4"])
def test_a_list_in_raster_order_has_the_components_that_scipy_finds(diagonal: int) -> None:
    found = label_pixel_lists(LISTS, sparse_labelling("row_table", diagonal))
    for of_event, image in zip(found, IMAGES, strict=True):
        labels = expected_labels(image, diagonal=bool(diagonal))
        np.testing.assert_array_equal(in_raster_order(of_event.image(image.shape)), labels)


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_each_instruction_set_gives_the_common_labels_of_lists_in_raster_order(target: str) -> None:
    mep = encode_mep(CHAIN.with_sequence(SEQUENCE), [encode_pixels(*of_event) for of_event in LISTS])
    made = run_reference(CHAIN, mep, {}, SEQUENCE, COLUMNS)
    for diagonal in (1, 0):
        trigger = TriggerConfig.from_toml(sparse_labelling("row_table", diagonal), CHAIN.menu)
        algorithms = tuple(trigger.configure(made.sequence))
        form, common = (
            run_algorithms(
                algorithms,
                made.given,
                made.n_events,
                made.limits,
                partial(on_cpu, kernels=CHAIN.kernels)(target, common=common),
            )
            for common in (False, True)
        )
        for name in made.made:
            np.testing.assert_array_equal(form[name], common[name], err_msg=name)
