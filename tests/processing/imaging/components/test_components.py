"""ccl_find_runs, ccl_label_runs, ccl_measure_components: partitions and features are those of SciPy and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.collections import DeclarationError
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.components.collections import MAX_COMPONENTS
from hltnode.processing.imaging.offline.simulation.likenesses import blobs, ridges, text_image
from hltnode.processing.imaging.offline.simulation.shapes import (
    checkerboard,
    comb,
    full,
    random_cells,
    spiral,
    stairs,
)
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from tests.processing.imaging.component_oracle import assert_as_expected, expected_labels
from tests.processing.imaging.image_events import label_images, labelling

CONNECTIVITIES = {"8": True, "4": False}
both_connectivities = pytest.mark.parametrize("diagonal", CONNECTIVITIES.values(), ids=CONNECTIVITIES)


def assert_all_as_expected(images: list[NDArray[Any]], *, diagonal: bool, threshold: int = 1, **of_mep: Any) -> None:
    configuration = labelling(diagonal=int(diagonal), threshold=threshold)
    for found, image in zip(label_images(images, configuration, **of_mep), images, strict=True):
        assert_as_expected(found, image, diagonal=diagonal, threshold=threshold)


@both_connectivities
def test_all_images_of_4_by_4_pixels(diagonal: bool) -> None:
    numbers = np.arange(1 << 16, dtype="<u2")
    tiles = np.unpackbits(numbers.view(np.uint8), bitorder="little").reshape(-1, 4, 4)
    # 512 of them in each of 128 images, apart by a pixel; at most 8 components each, so that all have features.
    framed = np.zeros((128, 16, 32, 5, 5), np.bool_)
    framed[..., :4, :4] = tiles.reshape(128, 16, 32, 4, 4)
    images = framed.transpose(0, 1, 3, 2, 4).reshape(128, 80, 160)
    assert_all_as_expected(list(images), diagonal=diagonal)


def random_images(seed: int, n: int) -> list[NDArray[Any]]:
    """Images of odd and even sizes and all densities, of 1 and 8 bits."""
    rng = np.random.default_rng(seed)
    images: list[NDArray[Any]] = []
    for i in range(n):
        width, height = rng.integers(1, 100, 2)
        mask = random_cells(int(width), int(height), i % 101 / 100, int(rng.integers(1, 6)), (seed, i))
        images.append(mask if i % 2 else np.where(mask, rng.integers(0, 256, mask.shape), 0).astype(np.uint8))
    return images


@both_connectivities
def test_random_images(diagonal: bool) -> None:
    assert_all_as_expected(random_images(1, 303), diagonal=diagonal, rows_per_strip=7)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@both_connectivities
@pytest.mark.parametrize("seed", range(20))
def test_ten_thousand_random_images(seed: int, diagonal: bool) -> None:
    assert_all_as_expected(random_images(100 + seed, 500), diagonal=diagonal)


@both_connectivities
@pytest.mark.parametrize("shape", [full, checkerboard, comb, stairs, spiral], ids=lambda shape: shape.__name__)
def test_shapes(shape: Any, diagonal: bool) -> None:
    images = [shape(width, height) for width, height in ((1, 1), (2, 3), (31, 33), (64, 64), (65, 40), (90, 91))]
    assert_all_as_expected(images, diagonal=diagonal)


@both_connectivities
@pytest.mark.parametrize("threshold", [0, 1, 100, 255, 256])
def test_likenesses_of_real_images_at_any_threshold(diagonal: bool, threshold: int) -> None:
    rng = np.random.default_rng(6)
    images: list[NDArray[Any]] = [make(93, 70, rng) for make in (text_image, ridges, blobs)]
    images.append(rng.integers(0, 256, (60, 61), dtype=np.uint8))
    assert_all_as_expected(images, diagonal=diagonal, threshold=threshold)


def test_a_threshold_does_not_change_pixels_of_1_bit() -> None:
    image = random_cells(50, 50, 0.4, 1, (1,))
    assert_as_expected(label_images([image], labelling(threshold=256))[0], image)


def test_corners_join_by_default_and_not_for_diagonal_0() -> None:
    image = np.eye(5, dtype=np.bool_)
    assert label_images([image])[0].n_components == 1
    assert label_images([image], labelling(diagonal=0))[0].n_components == 5
    assert label_images([image], labelling(diagonal=7))[0].n_components == 1


def image_of(*pixels: tuple[int, int]) -> NDArray[np.bool_]:
    image = np.zeros((16, 16), np.bool_)
    for column, row in pixels:
        image[row, column] = True
    return image


def test_the_nine_pixels_of_table_4_5_of_hennequin_are_four_components() -> None:
    pixels = [(10, 5), (4, 14), (3, 13), (9, 5), (1, 0), (11, 13), (10, 4), (12, 12), (8, 4)]
    (found,) = label_images([image_of(*pixels)])
    groups = {
        frozenset((int(x), int(y)) for y, x in np.argwhere(found.labels == label))
        for label in range(found.n_components)
    }
    assert groups == {
        frozenset({(1, 0)}),
        frozenset({(8, 4), (10, 4), (9, 5), (10, 5)}),
        frozenset({(12, 12), (11, 13)}),
        frozenset({(3, 13), (4, 14)}),
    }


@pytest.mark.parametrize(
    ("pixels", "runs"),
    [("1110110 1".replace(" ", ""), [(0, 3), (4, 6), (7, 8)]), ("111011001", [(0, 3), (4, 6), (8, 9)])],
    ids=["figure 4.25", "figure 4.15"],
)
def test_the_runs_of_the_figures_of_hennequin_are_found(pixels: str, runs: list[tuple[int, int]]) -> None:
    row = np.array([[pixel == "1" for pixel in pixels]])
    (found,) = label_images([row])
    assert [(int(f["left"]), int(f["right"]) + 1) for f in found.features] == runs


def test_components_beyond_the_bound_are_counted_and_flagged_and_have_no_features() -> None:
    # Single pixels with a pixel between them.
    dots = np.zeros((2 * 64, 2 * 65), np.bool_)
    dots[::2, ::2] = True
    most = dots.copy()
    most[::2, -2] = False
    exact, beyond, next_one = label_images([most, dots, full(9, 9)])
    assert_as_expected(exact, most)
    assert exact.n_components == len(exact.features) == MAX_COMPONENTS
    assert (beyond.n_components, len(beyond.features)) == (MAX_COMPONENTS + 64, MAX_COMPONENTS)
    assert beyond.flag_names == ["TOO_MANY_COMPONENTS"]
    assert beyond.flags & CHAIN.flag_table.errors
    assert_as_expected(beyond, dots, flags=beyond.flags)
    assert_as_expected(next_one, full(9, 9))


@pytest.mark.parametrize("sequence", ["whole_images", "large_images"])
def test_a_configuration_sets_the_number_of_components_with_features(sequence: str) -> None:
    dots = np.zeros((2 * 64, 2 * 65), np.bool_)
    dots[::2, ::2] = True
    for most in (64 * 65, 64 * 65 - 1):
        configuration = f'[sequence]\nname = "{sequence}"\n[sequence.ccl_place_images]\nmax_components = {most}\n'
        found, next_one = label_images([dots, full(9, 9)], configuration)
        assert len(found.features) == most
        assert found.flag_names == ([] if most == 64 * 65 else ["TOO_MANY_COMPONENTS"])
        assert_as_expected(found, dots, flags=found.flags)
        assert_as_expected(next_one, full(9, 9))


def test_a_configuration_sets_the_pixels_of_the_largest_image() -> None:
    configuration = "[sequence.ccl_place_images]\nmax_pixels = 200\n"
    exact, beyond, small = label_images([full(20, 10), full(20, 11), full(3, 3)], configuration)
    assert_as_expected(exact, full(20, 10))
    assert (beyond.flag_names, beyond.n_components) == (["IMAGE_TOO_LARGE"], 0)
    assert_as_expected(small, full(3, 3))
    # A row of an odd width has place for one more pixel in columns of runs.
    odd, beyond = label_images([full(9, 9), full(9, 10)], "[sequence.ccl_place_images]\nmax_pixels = 81\n")
    assert_as_expected(odd, full(9, 9))
    assert beyond.flag_names == ["IMAGE_TOO_LARGE"]


@pytest.mark.parametrize("sequence", ["cpu_labelling", "flsl"])
def test_a_batch_with_more_places_than_32_bits_count_is_refused(sequence: str) -> None:
    limits = BatchLimits(events=16, input_bytes=1 << 30)
    trigger = TriggerConfig.from_toml(f'[sequence]\nname = "{sequence}"\n', CHAIN.menu)
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    with pytest.raises(DeclarationError, match="kernels count in 32 bits"):
        CHAIN.with_sequence(sequence).create_engine(backend, {}, trigger, limits)


@pytest.mark.parametrize("value", ["max_components = 4095", "max_components = 8388609", "max_pixels = 268435457"])
def test_other_bounds_are_refused(value: str) -> None:
    with pytest.raises(TriggerConfigError, match="ccl_place_images"):
        label_images([full(3, 3)], f"[sequence.ccl_place_images]\n{value}\n")


def test_sums_of_a_large_image_need_64_bits() -> None:
    image = np.full((700, 3001), 255, np.uint8)
    (found,) = label_images([image])
    assert_as_expected(found, image)
    assert min(found.features[name][0] for name in ("sum_x", "weighted_x", "weighted_y")) > 1 << 31
    assert found.features["weighted_x"][0] == 255 * 700 * 3000 * 3001 // 2


@pytest.mark.parametrize("shape", [spiral, comb, stairs])
def test_shapes_of_the_simulation_have_their_components(shape: Any) -> None:
    image = shape(40, 41)
    labels = expected_labels(image, diagonal=False)
    if shape is stairs:
        assert labels.max() > 10
        assert expected_labels(image).max() < labels.max()
    else:
        assert labels.max() == 0
        assert 0.4 < image.mean() < 0.6
