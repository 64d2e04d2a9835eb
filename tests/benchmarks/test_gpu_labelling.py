"""The counted updates of labelling algorithms are those of small images that one can count by hand."""

from __future__ import annotations

import numpy as np

from benchmarks.gpu_labelling import Updates, updates_of_image


def test_a_full_row_has_an_update_for_each_pixel_chunk_or_run() -> None:
    assert {name: of.total for name, of in updates_of_image(np.ones((1, 200), np.bool_)).items()} == {
        "naive": 200,
        "ha4_64": 4,
        "ha4_64_cd": 4,
        "flsl": 1,
        "flsl_cd": 1,
    }


def test_a_warp_updates_each_of_its_components_once() -> None:
    # A comb: 40 teeth of one component, and in the first row a pixel of its own behind them.
    comb = np.zeros((2, 200), np.bool_)
    comb[0, 0:80:2] = comb[1, 0:80] = comb[0, 150] = True
    found = updates_of_image(comb)
    assert found["flsl"] == Updates(42, (41 * 41 + 1) / 42, 41)
    # First row: 32 teeth, then 8 and the single pixel; second row: one run.
    assert found["flsl_cd"] == Updates(4, (9 + 1) / 4, 3)
    # Chunks 0 and 1 of both rows, and chunk 2 of the first one.
    assert found["ha4_64_cd"] == Updates(5, (16 + 1) / 5, 4)
    assert found["ha4_64"] == Updates(43, (42 * 42 + 1) / 43, 42)
    assert found["naive"] == Updates(121, (120 * 120 + 1) / 121, 120)


def test_an_image_without_foreground_has_no_updates() -> None:
    assert set(updates_of_image(np.zeros((3, 70), np.bool_)).values()) == {Updates(0, 0.0, 0)}
