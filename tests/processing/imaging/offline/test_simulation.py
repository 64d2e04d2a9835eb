"""Simulated images: density, granularity, shapes, files, and the commands that read them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.imaging.offline.simulation.image_files import image_files, read_image
from hltnode.processing.imaging.offline.simulation.likenesses import THRESHOLD, blobs, ridges, text_image
from hltnode.processing.imaging.offline.simulation.sample import (
    EVENTS_PER_BLOCK,
    ImageOptions,
    ImageSample,
    Kind,
    encode_block,
)
from hltnode.processing.imaging.offline.simulation.shapes import random_cells, spiral
from hltnode.processing.imaging.strips import decode_image
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.odin import decode_odin
from tests.processing.imaging.component_oracle import expected_labels


def sample(seed: int = 1, **own: object) -> ImageSample:
    return ImageSample(SampleRequest(seed=seed), ImageOptions(**own))  # type: ignore[arg-type]


@pytest.mark.parametrize("granularity", [1, 3, 16])
def test_random_cells_have_the_density_and_the_size_asked_for(granularity: int) -> None:
    image = random_cells(1000, 600, 0.3, granularity, (1,))
    assert image.shape == (600, 1000)
    n_cells = image.size / granularity**2
    assert abs(image.mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / n_cells)
    cells = image[: 600 // granularity * granularity, : 1000 // granularity * granularity]
    blocks = cells.reshape(600 // granularity, granularity, 1000 // granularity, granularity)
    assert np.array_equal(blocks.min(axis=(1, 3)), blocks.max(axis=(1, 3)))
    for density, value in ((0.0, False), (1.0, True)):
        assert (random_cells(70, 50, density, granularity, (1,)) == value).all()


def test_events_take_the_densities_from_0_to_100_percent_in_turn() -> None:
    own = sample(granularity=1)
    means = [own.image(number).mean() for number in (0, 25, 50, 100, 101, 126)]
    assert means == pytest.approx([0, 0.25, 0.5, 1, 0, 0.25], abs=0.01)
    assert sample(granularity=1, density=25).image(7).mean() == pytest.approx(0.25, abs=0.01)


def test_a_spiral_is_one_path_of_one_pixel() -> None:
    for width, height in ((40, 41), (41, 40), (9, 9), (30, 7)):
        image = spiral(width, height)
        edged = np.pad(image, 1).astype(np.int64)
        neighbours = edged[1:-1, 2:] + edged[2:, 1:-1] + edged[1:-1, :-2] + edged[:-2, 1:-1]
        assert expected_labels(image, diagonal=False).max() == 0
        assert neighbours[image].max() == 2
        assert np.count_nonzero(neighbours[image] == 1) == 2


def test_likenesses_are_binary_images_with_components() -> None:
    rng = np.random.default_rng(3)
    for make, least in ((text_image, 50), (ridges, 5), (blobs, 10)):
        image = make(256, 200, rng)
        assert image.shape == (200, 256)
        assert image[image > 0].min() >= THRESHOLD
        assert 0.02 < (image > 0).mean() < 0.6
        assert expected_labels(image > 0).max() >= least


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("bits", [1, 8])
def test_every_kind_is_written_and_read_again(kind: Kind, bits: int) -> None:
    own = sample(kind=kind, bits=bits, width=50, height=41, rows=4, density=40)
    odin, *strips = own.banks(3)
    assert decode_odin(odin).event_id == 3
    found = decode_image(strips)
    assert (found.bits, found.missing, len(strips)) == (bits, 0, 11)
    assert np.array_equal(found.pixels, own.image(3))
    assert np.array_equal(own.image(3), sample(kind=kind, bits=bits, width=50, height=41, density=40).image(3))
    assert found.pixels.any()


def test_events_have_the_same_bytes_in_any_block_and_for_any_number_of_processes() -> None:
    own = sample(width=40, height=30)
    whole = encode_block(own, 0, 10)
    assert encode_block(own, 0, 4) + encode_block(own, 4, 6) == whole
    assert encode_block(sample(seed=2, width=40, height=30), 0, 10) != whole
    one, two = (list(own.blocks(EVENTS_PER_BLOCK + 1, jobs)) for jobs in (1, 2))
    assert [n for n, _ in one] == [EVENTS_PER_BLOCK, 1]
    assert one == two


def test_files_are_read_in_the_order_of_files_txt_or_of_their_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    grey = [rng.integers(0, 256, (7, 9), dtype=np.uint8) for _ in range(3)]
    Image.fromarray(grey[0]).save(tmp_path / "b.png")
    Image.fromarray(grey[1]).save(tmp_path / "a.tif")
    Image.fromarray(grey[2] > 127).save(tmp_path / "c.png")
    (tmp_path / "notes.md").write_text("no image")
    assert [file.name for file in image_files(tmp_path)] == ["a.tif", "b.png", "c.png"]
    assert np.array_equal(read_image(tmp_path / "b.png"), grey[0])
    assert np.array_equal(read_image(tmp_path / "a.tif"), grey[1])
    assert np.array_equal(read_image(tmp_path / "c.png"), (grey[2] > 127) * np.uint8(255))
    (tmp_path / "files.txt").write_text("c.png, 7\nb.png\n\n")
    assert [file.name for file in image_files(tmp_path)] == ["c.png", "b.png"]
    own = sample(images=tmp_path, bits=8)
    assert np.array_equal(own.image(1), grey[0])
    assert np.array_equal(own.image(2), own.image(0))
    assert np.array_equal(sample(images=tmp_path).image(1), grey[0] > 0)


def test_16_bits_of_a_tiff_are_scaled_to_8(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 255, 256, 0xFFFF]], np.uint16)).save(tmp_path / "deep.tif")
    assert read_image(tmp_path / "deep.tif").tolist() == [[0, 0, 1, 255]]


def test_a_file_that_is_no_image_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.png"
    wrong.write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    with pytest.raises(ValueError, match=r"wrong\.png: it cannot be read as an image"):
        read_image(wrong)
    Image.fromarray(np.zeros((1, 16385), np.uint8)).save(tmp_path / "long.png")
    with pytest.raises(ValueError, match=r"long\.png: 16385 x 1 pixels, at most 16384 x 16384"):
        read_image(tmp_path / "long.png")


def test_a_folder_without_images_or_with_a_wrong_list_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no images"):
        image_files(tmp_path)
    with pytest.raises(ValueError, match="no such file or folder"):
        image_files(tmp_path / "nowhere")
    (tmp_path / "files.txt").write_text("gone.png\n")
    with pytest.raises(ValueError, match=r"files\.txt: it names gone\.png, which is not in the folder"):
        image_files(tmp_path)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--bits", "4"], "--bits 4: expected 1 or 8"),
        (["--rows", "9000"], "--rows 9000: 9000 units of 32 bytes do not make a bank"),
        (["--images", "nowhere"], "nowhere: no such file or folder"),
        (["--geometry", "somewhere"], "somewhere"),
    ],
)
def test_options_that_cannot_be_met_are_named(options: list[str], text: str, tmp_path: Path) -> None:
    command = ["simulate", "--chain", "ccl", "-n", "2", "-o", str(tmp_path / "i.mdf"), "--jobs", "1", *options]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert text in " ".join(done.output.split())


def test_the_command_writes_images_that_process_labels(tmp_path: Path) -> None:
    file, result = tmp_path / "i.mdf", tmp_path / "o.json"
    options = ["--width", "60", "--height", "50", "--granularity", "2", "--jobs", "1"]
    done = CliRunner().invoke(app, ["simulate", "--chain", "ccl", "-n", "40", "-o", str(file), *options])
    assert done.exit_code == 0, done.output
    command = ["process", "--chain", "ccl", str(file), "--json", str(result), "--backend", "cpu", "--threads", "1"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    images = [decode_image(record.banks()).pixels for record in iter_records(file.read_bytes())]
    events = json.loads(result.read_text())["per_event"]
    assert [event["components"] for event in events] == [int(expected_labels(image > 0).max()) + 1 for image in images]
    assert max(event["components"] for event in events) > 20
    assert all(event["flags"] == [] for event in events)


def test_images_of_a_folder_go_from_png_to_fields(tmp_path: Path) -> None:
    folder, file = tmp_path / "pictures", tmp_path / "i.mep"
    folder.mkdir()
    Image.fromarray(blobs(80, 60, np.random.default_rng(1))).save(folder / "blobs.png")
    command = ["simulate", "--chain", "ccl", "-n", "3", "-o", str(file), "--images", str(folder), "--bits", "8"]
    done = CliRunner().invoke(app, [*command, "--jobs", "1"])
    assert done.exit_code == 0, done.output
    import hltnode

    events = hltnode.process([file], ["event.n_components", "components.intensity"], chain="ccl", backend="cpu")
    pixels = read_image(folder / "blobs.png")
    n = int(expected_labels(pixels).max()) + 1
    assert events.event.n_components.to_list() == [n] * 3
    assert sum(events.components.intensity.to_list()[0]) == pytest.approx(int(pixels.sum()))
