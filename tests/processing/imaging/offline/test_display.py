"""The picture of an image: each component in its colour, a page without foreign content, and a PNG."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.offline.display.event_reader import ImagePicture
from hltnode.processing.imaging.offline.display.html_page import SHOWN, event_page
from hltnode.processing.imaging.offline.display.picture import COLOURS, MOST_PIXELS, image_drawing
from hltnode.processing.imaging.offline.simulation.shapes import random_cells
from hltnode.processing.imaging.offline.tools.display import DISPLAY
from hltnode.processing.imaging.strips import encode_image
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from tests.processing.imaging.component_oracle import expected_labels

PATH = re.compile(r'<path fill="(#\w+)" d="([^"]+)"/>')
RUN = re.compile(r"M(\d+) (\d+)h(\d+)v1H\1z")
IMAGE = random_cells(60, 50, 0.3, 2, (3,))


def picture_of(image: NDArray[Any] | None, *more: RawBank, configuration: str = "") -> ImagePicture:
    """The picture of an event with a trigger configuration."""
    reader = DISPLAY.reader(CHAIN, None, TriggerConfig.from_toml(configuration, CHAIN.menu))
    try:
        return reader.read([*more, *([] if image is None else encode_image(image, 8))], "auto")
    finally:
        reader.close()


def drawn(drawing: str, shape: tuple[int, int]) -> NDArray[np.int64]:
    """The number of the colour of each pixel, -1 for background."""
    colours = np.full(shape, -1)
    for colour, path in PATH.findall(drawing):
        assert RUN.sub("", path) == ""
        for x, y, n in RUN.findall(path):
            row = colours[int(y), int(x) : int(x) + int(n)]
            assert len(row) == int(n)
            assert (row == -1).all()
            row[:] = COLOURS.index(colour)
    return colours


def test_each_component_has_its_colour_and_the_rest_none() -> None:
    labels = expected_labels(IMAGE)
    assert labels.max() > len(COLOURS)
    expected = np.where(labels < 0, -1, labels % len(COLOURS))
    assert np.array_equal(drawn(image_drawing(picture_of(IMAGE)), IMAGE.shape), expected)


@pytest.mark.parametrize("sequence", ["large_images", "naive", "ha4_64", "flsl_otf"])
def test_sequences_with_and_without_runs_give_the_same_picture(sequence: str) -> None:
    # Odd widths, one above a chunk of 64 pixels; strips of 8 rows, one of which is missing.
    grey = np.where(random_cells(131, 50, 0.4, 2, (4,)), 9, 2).astype(np.uint8)
    for image, more in ((IMAGE, ""), (grey, "threshold = 5\n")):
        banks = [bank for i, bank in enumerate(encode_image(image, 8)) if i != 3]
        first = next(
            each.name
            for each in CHAIN.sequences[sequence].algorithms
            if any(c.name == "threshold" for c in each.constants)
        )
        configuration = f'[sequence]\nname = "{sequence}"\n[sequence.{first}]\n{more}'
        usual = picture_of(None, *banks, configuration=f"[sequence.ccl_find_runs]\n{more}")
        if sequence == "ha4_64":
            usual = picture_of(
                None, *banks, configuration=f"[sequence.ccl_find_runs]\n{more}[sequence.ccl_label_runs]\ndiagonal = 0\n"
            )
        found = picture_of(None, *banks, configuration=configuration)
        assert usual.n_components > 5
        assert found.n_components == usual.n_components
        np.testing.assert_array_equal(found.labels, usual.labels)
        np.testing.assert_array_equal(found.components, usual.components)


def test_a_sequence_without_images_is_refused_by_name() -> None:
    with pytest.raises(TriggerConfigError, match=r"sequence sparse_images has no image_rows\.count"):
        picture_of(IMAGE, configuration='[sequence]\nname = "sparse_images"\n')


def test_the_status_page_gets_the_same_drawing() -> None:
    trigger = TriggerConfig.from_toml("", CHAIN.menu)
    assert CHAIN.picture_maker({}, trigger)(encode_image(IMAGE)) == image_drawing(picture_of(IMAGE))


def test_of_a_large_image_every_other_pixel_is_drawn_and_the_page_says_so() -> None:
    image = np.ones((20, 2 * MOST_PIXELS), np.bool_)
    picture = picture_of(image)
    assert (drawn(image_drawing(picture), (10, MOST_PIXELS)) == 0).all()
    assert "one of 2 rows and columns is drawn" in event_page(picture, source="x", n_lines=1)
    assert "rows and columns is drawn" not in event_page(picture_of(image[:, :MOST_PIXELS]), source="x", n_lines=1)


def test_an_event_without_image_has_an_empty_picture() -> None:
    picture = picture_of(None)
    assert (picture.title, picture.summary) == ("an event without ODIN", "no image that can be labelled")
    assert picture.flags == ("NO_IMAGE",)
    assert PATH.findall(image_drawing(picture)) == []


def test_the_page_lists_the_largest_components_first_and_escapes_names() -> None:
    image = np.zeros((30, 440), np.uint8)
    image[::2, ::4] = 7
    image[0, 10:15] = 3
    configuration = '[[lines]]\ntype = "ComponentArea"\nname = "Five"\nmin_area = 5\n'
    page = event_page(picture_of(image, encode_odin(Odin(run=5, event_id=77)), configuration=configuration),
                      source="<b>.mdf", n_lines=1)  # fmt: skip
    assert "<h1>run 5, event 77</h1>" in page
    assert "&lt;b&gt;.mdf" in page
    assert "<li>Five</li>" in page
    assert "<td>3</td><td>5</td><td>10 to 14</td><td>0 to 0</td><td>12.00</td><td>0.00</td><td>15</td>" in page
    assert page.count("<tr>") == 1 + SHOWN
    assert f"the largest {SHOWN} of 1650" in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize("suffix", ["html", "png"])
def test_the_command_draws_an_event_of_a_file(suffix: str, tmp_path: Path) -> None:
    if suffix == "png":
        pytest.importorskip("matplotlib")
    file, output = tmp_path / "events.mdf", tmp_path / f"event.{suffix}"
    file.write_bytes(encode_record(encode_banks(encode_image(np.ones((3, 5), np.bool_))), run=5, checksum=False))
    done = CliRunner().invoke(app, ["display", str(file), "--chain", "ccl", "-o", str(output)])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "5 x 3 pixels of 1 bit, 100.0% foreground; 1 component, the largest has 15 pixels" in said
    assert output.read_bytes()[:4] == (b"<!do" if suffix == "html" else b"\x89PNG")


def test_no_grid_covers_the_pixels_of_a_still_picture(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    file, output = tmp_path / "events.mdf", tmp_path / "event.png"
    file.write_bytes(encode_record(encode_banks(encode_image(np.zeros((256, 256), np.bool_))), run=5, checksum=False))
    done = CliRunner().invoke(app, ["display", str(file), "--chain", "ccl", "-o", str(output)])
    assert done.exit_code == 0, done.output
    height, width = image.imread(output).shape[:2]
    middle = image.imread(output)[height // 4 : 3 * height // 4, width // 4 : 3 * width // 4, :3]
    # All pixels are background, so the middle of the picture has one colour.
    assert np.ptp(middle.reshape(-1, 3), axis=0).max() == 0
