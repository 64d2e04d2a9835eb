"""The counted updates of labelling algorithms are those of small images that one can count by hand."""

from __future__ import annotations

import numpy as np

from benchmarks.imaging.gpu_labelling import FEATURE_BYTES, Updates, bytes_of_image, summary, updates_of_image
from benchmarks.measure import Result


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


def test_a_row_has_bytes_for_its_pixels_labels_edges_and_features() -> None:
    row = np.zeros((1, 256), np.bool_)
    row[0, 4:100] = row[0, 102] = True
    assert FEATURE_BYTES == 60
    # The image has 32 bytes, the labels of both runs are in two sectors; two components.
    numbered = 2 * (32 + 64) + 64
    found = bytes_of_image(row)
    assert found["floor"] == 32 + 2 * 60
    # Label and features read the image; the first run has another piece, in the sector of pixel 64.
    assert found["ha4_64"] == found["ha4_64_cd"] == 2 * (32 + 96) + numbered + 240
    # Four edges in one sector, eight chunks of 8 bytes.
    assert found["flsl"] == found["flsl_cd"] == 32 + 64 + 32 + 64 + numbered + 32 + 64 + 240
    # 97 pixels in 13 sectors.
    assert found["naive"] == 2 * (32 + 13 * 32) + numbered + 240


def test_rows_at_the_borders_of_strips_are_read_again_by_ha4_alone() -> None:
    # Sixteen rows: every strip of HA4 begins below a border, and only pixels there have labels to join.
    empty, full = np.zeros((16, 256), np.bool_), np.zeros((16, 256), np.bool_)
    full[:, 0] = True
    strip_borders = (bytes_of_image(empty)["ha4_64"] - 4 * 16 * 32) // 32
    assert 0 < strip_borders < 16
    assert strip_borders % 2 == 0
    more = bytes_of_image(full)["ha4_64"] - bytes_of_image(empty)["ha4_64"]
    # Labels of 16 pixels in four kernels, the first one once more; at borders read and written.
    assert more == 32 * (4 * 16 + 1 + 2 * strip_borders) + 2 * FEATURE_BYTES


def test_the_summary_has_the_figures_of_flsl_with_conflict_detection() -> None:
    rows = [
        Result("g = 1, flsl", 9.0, "Gpix/s", "ha4_64", 2.0),
        Result("  bytes", 7000.0, "/kpixel", "share of the floor", 0.1),
        Result("g = 1, flsl_cd", 90.0, "Gpix/s", "ha4_64", 20.0, 5.0),
        Result("  bytes", 4000.0, "/kpixel", "share of the floor", 0.25),
        Result("g = 1, floor", 1000.0, "bytes/kpixel", "", None),
    ]
    assert summary(rows) == {"g1": {"ratio_ha4": 20.0, "bytes_per_pixel": 4.0, "floor_share": 0.25}}
