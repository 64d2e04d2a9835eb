"""Every labelling sequence for GPUs gives the components of SciPy with the features of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.components.collections import MAX_COMPONENTS
from hltnode.processing.imaging.gpu_labelling.sequences import GPU_SEQUENCES
from hltnode.processing.imaging.offline.simulation.likenesses import blobs, ridges, text_image
from hltnode.processing.imaging.offline.simulation.shapes import (
    checkerboard,
    comb,
    full,
    random_cells,
    spiral,
    stairs,
)
from hltnode.processing.imaging.strips import encode_image
from tests.processing.imaging.component_oracle import expected_features, expected_labels
from tests.processing.imaging.gpu_labelling.sequences_under_test import WAYS, Way, label_meps, label_through
from tests.processing.imaging.image_events import Labelled, label_banks, labelling

every_way = pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])


@cache
def images() -> tuple[NDArray[Any], ...]:
    """All images of 4 x 4 pixels, random ones of odd sizes, densities and granularities, shapes, likenesses."""
    tiles = np.unpackbits(np.arange(1 << 16, dtype="<u2").view(np.uint8), bitorder="little").reshape(-1, 4, 4)
    # 512 of them in each of 128 images, apart by a pixel; at most 8 components each, so that all have features.
    framed = np.zeros((128, 16, 32, 5, 5), np.bool_)
    framed[..., :4, :4] = tiles.reshape(128, 16, 32, 4, 4)
    found: list[NDArray[Any]] = list(framed.transpose(0, 1, 3, 2, 4).reshape(128, 80, 160))
    rng = np.random.default_rng(5)
    for i in range(60):
        width, height = int(rng.integers(1, 200)), int(rng.integers(1, 150))
        mask = random_cells(width, height, i / 60, int(rng.integers(1, 17)), (7, i))
        found.append(mask if i % 2 else np.where(mask, rng.integers(0, 256, mask.shape), 0).astype(np.uint8))
    for shape in (full, checkerboard, comb, stairs, spiral):
        found += [shape(width, height) for width, height in ((1, 1), (33, 31), (64, 64), (65, 119), (130, 60))]
    found += [make(93, 170, rng) for make in (text_image, ridges, blobs)]
    # Test vectors of figures 4.25 and 4.15 of Hennequin.
    found += [np.array([[pixel == "1" for pixel in row]]) for row in ("11101101", "111011001")]
    return tuple(found)


@cache
def expected(diagonal: bool) -> list[tuple[NDArray[np.int64], NDArray[np.void]]]:
    """Labels and features of the images."""
    labels = [expected_labels(image, diagonal=diagonal) for image in images()]
    return [(of, expected_features(image, of)) for image, of in zip(images(), labels, strict=True)]


def assert_equal(found: Labelled, labels: NDArray[Any], features: NDArray[np.void], flags: int = 0) -> None:
    np.testing.assert_array_equal(found.labels, labels)
    assert found.n_components == len(features)
    np.testing.assert_array_equal(found.features, features[:MAX_COMPONENTS])
    assert found.flags == flags, found.flag_names


@every_way
def test_components_and_features_are_those_of_scipy_and_numpy(way: Way) -> None:
    found = label_through(way, images(), rows_per_strip=37)
    for one, (labels, features) in zip(found, expected(way.diagonal), strict=True):
        assert_equal(one, labels, features)


@every_way
def test_threads_share_an_image_and_find_the_same(way: Way) -> None:
    chosen = slice(128, None, 3)
    for threads in (2, 8):
        found = label_through(way, images()[chosen], threads=threads)
        for one, (labels, features) in zip(found, expected(way.diagonal)[chosen], strict=True):
            assert_equal(one, labels, features)


@every_way
def test_pixels_below_the_threshold_are_background(way: Way) -> None:
    grey = np.random.default_rng(9).integers(0, 256, (40, 91), dtype=np.uint8)
    meps = [encode_mep(CHAIN, [encode_image(grey)])]
    for threshold in (0, 128, 256):
        labels = expected_labels(grey, diagonal=way.diagonal, threshold=threshold)
        (found,) = label_meps(way, meps, [grey], threshold=threshold)
        assert_equal(found, labels, expected_features(grey, labels))


def without_rows(image: NDArray[Any], rows: slice) -> NDArray[Any]:
    left = image.copy()
    left[rows] = 0
    return left


@every_way
def test_damaged_images_have_the_flags_of_the_default_sequence_and_touch_no_other_event(way: Way) -> None:
    image = random_cells(70, 40, 0.6, 2, (3,))
    banks = encode_image(image, 4)
    other = encode_image(full(70, 40), 4)
    dots = np.zeros((2 * 64, 2 * 65), np.bool_)
    dots[::2, ::2] = True
    cases: Sequence[tuple[Any, NDArray[Any]]] = (
        (banks, image),
        ([*banks[:2], *banks[4:]], without_rows(image, slice(8, 16))),  # rows are missing
        (banks[1:], without_rows(image, slice(0, 4))),
        (banks[:3], image),  # too few rows
        ([], image),
        ([*banks, other[3]._replace(source_id=banks[-1].source_id + 1)], image),  # rows are there twice
        (encode_image(dots), dots),  # too many components
        (banks, image),
    )
    events, seen = zip(*cases, strict=True)
    found = label_meps(way, [encode_mep(CHAIN, events)], seen)
    usual = label_banks(events, labelling(diagonal=int(way.diagonal)))
    assert all(one.same_as(other) for one, other in zip(found, usual, strict=True))
    flags = [one.flag_names for one in found]
    assert flags == [
        [],
        ["MISSING_ROWS"],
        ["MISSING_ROWS"],
        ["MISSING_ROWS"],
        ["NO_IMAGE"],
        ["OVERLAPPING_STRIPS"],
        ["TOO_MANY_COMPONENTS"],
        [],
    ]
    assert found[6].n_components == MAX_COMPONENTS + 64


def test_sums_of_large_images_need_64_bits() -> None:
    wide, tall = np.full((40, 16384), 255, np.uint8), np.ones((16384, 40), np.bool_)
    features = [expected_features(image, np.zeros(image.shape, np.int64)) for image in (wide, tall)]
    assert features[0]["sum_x"][0] > 1 << 32
    assert features[1]["sum_y"][0] > 1 << 32
    for way in WAYS:
        for found, image, of_image in zip(label_through(way, (wide, tall)), (wide, tall), features, strict=True):
            assert_equal(found, np.zeros(image.shape, np.int64), of_image)


def test_ha4_is_4_connected_and_the_others_are_8_connected_by_default() -> None:
    for sequence, algorithms in GPU_SEQUENCES.items():
        diagonal = [
            constant.value
            for algorithm in algorithms
            for constant in algorithm.constants
            if constant.name == "diagonal"
        ]
        assert diagonal == ([] if sequence.startswith("ha4") else [1])
