"""The sequence `cpu_labelling`: each method finds the components of the common kernel and of other programs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.components.collections import MAX_COMPONENTS
from hltnode.processing.imaging.cpu_labelling.collections import Method
from hltnode.processing.imaging.cpu_labelling.label_image import label_image
from hltnode.processing.imaging.images.flags import MISSING_ROWS, TOO_MANY_COMPONENTS
from hltnode.processing.imaging.offline.simulation.shapes import checkerboard, comb, full, random_cells, spiral, stairs
from hltnode.processing.imaging.strips import encode_image
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.imaging.chain_under_test import reference
from tests.processing.imaging.component_oracle import assert_as_expected, in_raster_order
from tests.processing.imaging.image_events import label_banks, label_images

LIBRARY = KernelLibrary(CHAIN.kernels)


def labelling_by(method: Method, threshold: int = 1) -> str:
    """A trigger configuration of the sequence."""
    return (
        '[sequence]\nname = "cpu_labelling"\n'
        f"[sequence.ccl_label_image]\nmethod = {int(method)}\nthreshold = {threshold}\n"
    )


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_every_method_gives_the_bytes_of_the_common_kernel(target: str) -> None:
    # Widths around two words of 64 pixels, and around multiples of 4, 8 and 16 lanes.
    images = reference(7, 9, 124, "cpu_labelling")
    common: dict[int, dict[str, NDArray[Any]]] = {}
    for method in Method:
        for threshold in (1, 128):
            trigger = TriggerConfig.from_toml(labelling_by(method, threshold), CHAIN.menu)
            algorithms = tuple(trigger.configure(images.sequence))

            def run(launch: Any, algorithms: Any = algorithms) -> dict[str, NDArray[Any]]:
                return run_algorithms(algorithms, images.given, images.n_events, images.limits, launch)

            if threshold not in common:
                common[threshold] = run(on_cpu(target, common=True, kernels=CHAIN.kernels))
            form = run(on_cpu(target, kernels=CHAIN.kernels))
            for name in images.made:
                np.testing.assert_array_equal(form[name], common[threshold][name], err_msg=f"{method.name}, {name}")
    assert not np.array_equal(common[1]["all_components.count"], common[128]["all_components.count"])
    assert LIBRARY.address(target, label_image.name) != LIBRARY.address(target, label_image.name, common=True)


@pytest.mark.parametrize("method", Method)
def test_images_of_all_sizes_and_hard_shapes(method: Method) -> None:
    images: list[NDArray[Any]] = [shape(150, 141) for shape in (spiral, comb, stairs, checkerboard, full)]
    images += [random_cells(1 + 7 * i % 150, 1 + 5 * i % 90, i / 40, 1 + i % 4, (8, i)) for i in range(1, 40)]
    images += [(image * np.uint8(200)).astype(np.uint8) for image in images[-6:]]
    for found, image in zip(label_images(images, labelling_by(method)), images, strict=True):
        assert_as_expected(found, image)


@pytest.mark.parametrize("method", [Method.ROSENFELD_DT, Method.LSL_STD, Method.SIMD_V2_256])
def test_missing_rows_are_background_and_too_many_components_are_flagged(method: Method) -> None:
    image = random_cells(90, 60, 0.4, 2, (9,))
    gap = image.copy()
    gap[10:20] = False
    banks = encode_image(image, rows_per_strip=10)
    (found,) = label_banks([[*banks[:1], *banks[2:]]], labelling_by(method))
    assert_as_expected(found, gap, flags=MISSING_ROWS.mask)
    dots = np.zeros((130, 130), np.bool_)
    dots[::2, ::2] = True
    (beyond,) = label_images([dots], labelling_by(method))
    assert (beyond.n_components, len(beyond.features)) == (65 * 65, MAX_COMPONENTS)
    assert beyond.flags == TOO_MANY_COMPONENTS.mask


@pytest.mark.parametrize("module", ["cv2", "cc3d", "skimage.measure"])
def test_partitions_are_those_of_other_programs(module: str) -> None:
    pytest.importorskip(module, reason=f"{module} is not installed (dependency group `peers`)")
    other: Any = importlib.import_module(module)
    programs: dict[str, Callable[[NDArray[np.uint8]], Any]] = {
        "cv2": lambda image: other.connectedComponents(image, connectivity=8)[1],
        "cc3d": lambda image: other.connected_components(image, connectivity=8),
        "skimage.measure": lambda image: other.label(image, connectivity=2),
    }
    images = [random_cells(301, 203, d / 10, g, (10, d, g)) for d in range(1, 10) for g in (1, 3)]
    images += [shape(201, 150) for shape in (spiral, comb, stairs, checkerboard, full)]
    for found, image in zip(label_images(images), images, strict=True):
        expected = in_raster_order(np.asarray(programs[module](image.astype(np.uint8)), np.int64) - 1)
        np.testing.assert_array_equal(found.labels, expected)
