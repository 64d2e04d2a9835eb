"""docs/how-to/label-images.md works: the table of the node has the blobs that scipy finds in the PNG."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.docs.followed_page import ROOT, Reader, blocks

pytestmark = [pytest.mark.process, pytest.mark.loopback, pytest.mark.timeout(800)]

PAGE = ROOT / "docs" / "how-to" / "label-images.md"
THRESHOLD = 60
"""Of the page."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the reader after the last block of the page."""
    pytest.importorskip("skimage", reason="scikit-image, whose pictures the page uses, is not installed")
    with Reader(tmp_path_factory.mktemp("reader")) as reader:
        reader.follow(PAGE)
        yield reader.folder


@pytest.mark.expensive("runs each command of the page")
def test_the_table_has_the_blobs_that_scipy_finds(folder: Path) -> None:
    ndimage = pytest.importorskip("scipy.ndimage", reason="scipy is not installed")
    with Image.open(folder / "sky.png") as picture:
        pixels = np.asarray(picture)
    assert pixels.shape == (872, 1000)
    labels, n = ndimage.label(pixels >= THRESHOLD, structure=np.ones((3, 3)))
    areas = np.bincount(labels.ravel())[1:].tolist()
    expected = sorted(
        (area, columns.start, rows.start, columns.stop - 1, rows.stop - 1)
        for area, (rows, columns) in zip(areas, ndimage.find_objects(labels), strict=True)
    )
    with (folder / "blobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert 500 < n == len(rows) < 4096
    assert (
        sorted(tuple(int(row[name]) for name in ("area", "left", "top", "right", "bottom")) for row in rows) == expected
    )
    assert all(float(row["x"]) == (int(row["left"]) + int(row["right"])) / 2 for row in rows)
    assert {row["event"] for row in rows} == {"0"}


def test_a_stream_of_images_is_slowed_by_its_rate_and_its_accounting_closes(folder: Path) -> None:
    found = json.loads((folder / "demo.json").read_text())
    assert found["accounting_closes"]
    assert found["events"] == 160
    # Without --rate there are thousands. A feeder that waits for the other one may catch up later.
    assert found["events_per_second"] < 500


def test_one_block_of_commands_is_not_run() -> None:
    assert [block.mark for block in blocks(PAGE) if block.mark.startswith("skip")] == [
        "skip, the test has an environment that is built"
    ]
