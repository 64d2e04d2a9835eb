"""The sequence `large_images`: many threads label one image, and find what one thread finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import plan_memory
from hltnode.processing.imaging.chain import CHAIN, SEQUENCES
from hltnode.processing.imaging.components.collections import MAX_COMPONENTS
from hltnode.processing.imaging.large_images.collections import N_GROUPS, N_PARTS
from hltnode.processing.imaging.offline.simulation.likenesses import blobs, ridges, text_image
from hltnode.processing.imaging.offline.simulation.shapes import (
    checkerboard,
    comb,
    full,
    random_cells,
    spiral,
    stairs,
)
from hltnode.processing.imaging.strips import MAX_SIDE
from tests.processing.imaging.component_oracle import assert_as_expected, expected_features, expected_labels
from tests.processing.imaging.image_events import (
    COLUMNS,
    Labelled,
    features_of_event,
    label_images,
    labelling,
    mep_of_images,
    number_of_event,
    run_chain,
)

both_connectivities = pytest.mark.parametrize("diagonal", [True, False], ids=["8", "4"])


def assert_all_as_expected(images: list[NDArray[Any]], *, diagonal: bool = True, threshold: int = 1, **of: Any) -> None:
    configuration = labelling("large_images", diagonal=int(diagonal), threshold=threshold)
    for found, image in zip(label_images(images, configuration, **of), images, strict=True):
        assert_as_expected(found, image, diagonal=diagonal, threshold=threshold)


def random_images(seed: int, n: int) -> list[NDArray[Any]]:
    """Images of 1 and 8 bits and all densities, with fewer and with more rows than parts."""
    rng = np.random.default_rng(seed)
    images: list[NDArray[Any]] = []
    for i in range(n):
        width, height = int(rng.integers(1, 100)), int(rng.integers(1, 3 * N_PARTS + 2))
        mask = random_cells(width, height, i % 101 / 100, int(rng.integers(1, 6)), (seed, i))
        images.append(mask if i % 2 else np.where(mask, rng.integers(0, 256, mask.shape), 0).astype(np.uint8))
    return images


@both_connectivities
@pytest.mark.parametrize("threads", [1, 3])
def test_random_images(diagonal: bool, threads: int) -> None:
    assert_all_as_expected(random_images(5, 202), diagonal=diagonal, threads=threads, rows_per_strip=7)


@both_connectivities
@pytest.mark.parametrize("shape", [full, checkerboard, comb, stairs, spiral], ids=lambda shape: shape.__name__)
def test_shapes(shape: Any, diagonal: bool) -> None:
    sizes = ((1, 1), (2, 3), (64, 63), (64, 64), (31, 65), (60, 127), (60, 128), (40, 200))
    assert_all_as_expected([shape(*size) for size in sizes], diagonal=diagonal, threads=2)


@pytest.mark.parametrize("threshold", [0, 100, 256])
def test_thresholds(threshold: int) -> None:
    rng = np.random.default_rng(8)
    images: list[NDArray[Any]] = [make(93, 170, rng) for make in (text_image, ridges, blobs)]
    assert_all_as_expected(images, threshold=threshold, threads=2)


@pytest.mark.parametrize("height", range(1, 140))
def test_parts_and_groups_of_few_rows_are_joined(height: int) -> None:
    # Whether a border of parts is one of groups depends on the parts that are empty. Columns join all rows.
    image = np.zeros((height, 9), np.bool_)
    image[:, ::2] = True
    diagonal = np.eye(height, dtype=np.bool_)
    assert_all_as_expected([image, diagonal, ~diagonal], threads=2)


def test_both_sequences_give_the_same_bytes_with_any_number_of_threads() -> None:
    meps = [mep_of_images(random_images(9, 40)), mep_of_images([full(50, 300), spiral(99, 200)], first_event=40)]
    whole, histograms = run_chain(meps)
    for threads in (1, 2, 8):
        large, filled = run_chain(meps, labelling("large_images"), threads=threads)
        assert all(one.same_as(other) for one, other in zip(whole, large, strict=True))
        assert [one.lines for one in whole] == [other.lines for other in large]
        assert {name: content.counts.tolist() for name, content in filled.items()} == {
            name: content.counts.tolist() for name, content in histograms.items()
        }


def test_components_beyond_the_bound_are_counted_and_flagged() -> None:
    dots = np.zeros((2 * 64, 2 * 65), np.bool_)
    dots[::2, ::2] = True
    (beyond, next_one) = label_images([dots, full(9, 90)], labelling("large_images"), threads=2)
    assert (beyond.n_components, len(beyond.features)) == (MAX_COMPONENTS + 64, MAX_COMPONENTS)
    assert beyond.flag_names == ["TOO_MANY_COMPONENTS"]
    assert_as_expected(beyond, dots, flags=beyond.flags)
    assert_as_expected(next_one, full(9, 90))


def test_sums_of_a_large_image_need_64_bits() -> None:
    image = np.full((700, 3001), 255, np.uint8)
    (found,) = label_images([image], labelling("large_images"), threads=2)
    assert_as_expected(found, image)
    assert found.features["weighted_x"][0] == 255 * 700 * 3000 * 3001 // 2


def test_an_image_has_many_parts() -> None:
    plan = plan_memory(SEQUENCES["large_images"].algorithms, BatchLimits(events=4), fuse_events=True)
    parts = [stage for stage in plan.stages if stage[0].parts is not None]
    assert [(stage[0].name, stage[0].parts) for stage in parts if len(stage) == 1] == [
        *(("ccl_count_runs", N_PARTS), ("ccl_join_runs", N_PARTS), ("ccl_join_borders", N_GROUPS)),
        *(("ccl_find_roots", N_PARTS), ("ccl_number_roots", N_PARTS), ("ccl_measure_parts", N_PARTS)),
    ]
    assert len(parts) == 6
    assert CHAIN.default_sequence == "whole_images"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_an_image_of_the_largest_size_has_the_components_of_its_tiles() -> None:
    # Tiles with an empty border, so that no component crosses from one into another: their components are known.
    tile = np.zeros((1024, 1024), np.bool_)
    tile[1:-1, 1:-1] = random_cells(1022, 1022, 0.5, 8, (16,))
    tiles = MAX_SIDE // 1024
    labels = expected_labels(tile)
    features = expected_features(tile, labels)
    n = tiles**2 * len(features)
    constants = f"max_components = {max(n, MAX_COMPONENTS)}\nmax_pixels = {MAX_SIDE**2}\n"
    configuration = f'[sequence]\nname = "large_images"\n[sequence.ccl_place_images]\n{constants}'
    mep = mep_of_images([np.tile(tile, (tiles, tiles))])
    names = [name for name in COLUMNS if not name.startswith(("runs.", "image_rows."))]

    def read(columns: Mapping[str, NDArray[Any]], event: int, lines: frozenset[str], accepted: bool) -> Labelled:
        return Labelled(
            np.zeros((0, 0), np.int32),
            features_of_event(columns, event),
            int(columns["all_components.count"][event]),
            int(columns["events.flags"][event]),
            lines,
            accepted,
            number_of_event(columns, event),
        )

    ((found,), _) = run_chain([mep], configuration, threads=2, names=names, read=read)
    assert found.flags == 0
    assert found.n_components == len(found.features) == n
    expected = np.tile(features, tiles**2)
    corner = np.repeat(np.arange(tiles**2), len(features))
    for sides, sums, shift in (
        (("left", "right"), ("sum_x", "weighted_x"), 1024 * (corner % tiles)),
        (("top", "bottom"), ("sum_y", "weighted_y"), 1024 * (corner // tiles)),
    ):
        for side in sides:
            expected[side] += shift.astype(expected[side].dtype)
        for name in sums:
            expected[name] += (shift * expected["area"].astype(np.int64)).astype(expected[name].dtype)
    assert np.sort(found.features).tobytes() == np.sort(expected).tobytes()
