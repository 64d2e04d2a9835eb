"""Components of an image by SciPy, and their features by NumPy, independent of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from tests.processing.imaging.image_events import FEATURES, Labelled

EIGHT = np.ones((3, 3), np.int8)
FOUR = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.int8)


def in_raster_order(labels: NDArray[Any]) -> NDArray[np.int64]:
    """The same partition with components numbered from 0 by their first pixels; background, -1 before and after."""
    foreground = labels >= 0
    _, first, inverse = np.unique(labels[foreground], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    renamed = np.full(labels.shape, -1, np.int64)
    renamed[foreground] = rank[inverse]
    return renamed


def expected_labels(image: NDArray[Any], *, diagonal: bool = True, threshold: int = 1) -> NDArray[np.int64]:
    """The labels of an image, i64[height, width], -1 for background."""
    foreground = image if image.dtype == np.bool_ else image >= threshold
    labels, _ = ndimage.label(foreground, EIGHT if diagonal else FOUR)
    return in_raster_order(labels.astype(np.int64) - 1)


def expected_features(image: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[np.void]:
    """The features of each component, records of FEATURES. Sums of doubles are exact below 2^53."""
    n = int(labels.max(initial=-1)) + 1
    y, x = np.nonzero(labels >= 0)
    of, value = labels[y, x], image[y, x].astype(np.int64)
    found = np.zeros(n, FEATURES)

    def total(weights: NDArray[np.int64]) -> NDArray[Any]:
        return np.bincount(of, weights, n)

    found["area"] = total(np.ones_like(x))
    found["left"], found["top"] = (
        [axis[of == i].min() for i in range(n)] if n < 50 else ndimage.minimum(axis, of, np.arange(n))
        for axis in (x, y)
    )
    found["right"], found["bottom"] = (
        [axis[of == i].max() for i in range(n)] if n < 50 else ndimage.maximum(axis, of, np.arange(n))
        for axis in (x, y)
    )
    found["sum_x"], found["sum_y"] = total(x), total(y)
    found["intensity"] = total(value)
    found["weighted_x"], found["weighted_y"] = total(x * value), total(y * value)
    return found


def assert_as_expected(
    found: Labelled, image: NDArray[Any], *, diagonal: bool = True, threshold: int = 1, flags: int = 0
) -> None:
    """The chain found the components of the oracle with the same features, and no flags but `flags`."""
    labels = expected_labels(image, diagonal=diagonal, threshold=threshold)
    np.testing.assert_array_equal(found.labels, labels)
    features = expected_features(image, labels)
    assert found.n_components == len(features)
    for name in found.features.dtype.names or ():
        np.testing.assert_array_equal(found.features[name], features[name][: len(found.features)], err_msg=name)
    assert found.flags == flags, found.flag_names
