"""The benchmark of the chain `ccl`: its JSON, and the ratio of a node to its kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.imaging import ccl
from benchmarks.imaging.ccl_node import GRANULARITIES, PER_MEP, prepare
from benchmarks.measure import Result
from benchmarks.readout.node_beside_kernels import Turn, node_rows


def test_the_json_has_ratios_by_granularity_and_those_of_sparse_images_and_of_a_node() -> None:
    rows = [
        Result("g = 1, scipy", 50_000.0, "us/image", "scipy.ndimage.label", 3.5, 3.0),
        Result("g = 1, rosenfeld_dt", 40_000.0, "us/image", "own Rosenfeld with decision tree", 2.75, 2.5),
        Result("  whole chain", 14_000.0, "us/image", "", None),
        Result("g = 1, cycles", 5.0, "cycles/pixel", "", None),
        Result("g = 4, cycles", 1.8, "cycles/pixel", "", None),
        Result("g = 4, opencv", 9_000.0, "us/image", "cv2.connectedComponents", 3.0, 1.3),
        Result("g = 4, large_images, two threads", 5.0, "images/s", "one thread", 1.9, 1.8),
        Result("row_table (published 17.4 us)", 30.0, "us/image", "dense", 3.5, 10.0),
        *node_rows("g = 1", "us/image", [Turn(14_000.0, {"kernels": 14_700.0})]),
        *node_rows("g = 4", "us/image", [Turn(100.0, {"kernels": 99.0})]),
    ]
    assert ccl.summary(rows) == {
        "g1": {
            "ratio_scipy": 3.5,
            "ratio_opencv": None,
            "ratio_cc3d": None,
            "ratio_rosenfeld_dt": 2.75,
            "cycles_per_pixel": 5.0,
        },
        "g4": {"ratio_opencv": 3.0, "ratio_cc3d": None, "cycles_per_pixel": 1.8, "ratio_two_threads": 1.9},
        "sparse_ratio": 3.5,
        "node_ratio": pytest.approx(1.05),
    }


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_no_image_of_the_node_is_flagged_and_so_written_to_its_error_stream(tmp_path: Path, granularity: int) -> None:
    _, mep, alone = prepare(granularity, tmp_path / "trigger.toml")
    [batch] = alone.runner.run([mep])
    output = batch.workspace.output
    assert len(output.flags) == PER_MEP
    assert not output.flags.any()
    assert output.counts["components"].max() > 4096
