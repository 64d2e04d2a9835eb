"""The list of components in JSON results and arrays, for both sequences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import hltnode
from hltnode.daemon.cli import app
from hltnode.processing.imaging.offline.display.event_reader import label_image
from hltnode.processing.imaging.offline.simulation.shapes import full, random_cells
from hltnode.processing.imaging.strips import encode_image
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import encode_banks
from tests.processing.imaging.component_oracle import expected_features, expected_labels

NAMES = ("area", "left", "top", "right", "bottom")
IMAGES: list[NDArray[Any]] = [
    random_cells(50, 70, 0.3, 2, (1,)),
    np.zeros((9, 9), np.bool_),
    full(20, 10),
    random_cells(90, 80, 0.6, 1, (2,)),
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the images."""
    path = tmp_path_factory.mktemp("lists") / "images.mdf"
    banks = (encode_banks(encode_image(image)) for image in IMAGES)
    path.write_bytes(b"".join(encode_record(of_event, run=5, checksum=False) for of_event in banks))
    return path


def expected(name: str) -> list[list[int]]:
    return [expected_features(image, expected_labels(image))[name].tolist() for image in IMAGES]


@pytest.mark.parametrize("sequence", ["whole_images", "large_images"])
def test_json_results_have_the_features_of_each_component(file: Path, tmp_path: Path, sequence: str) -> None:
    result = tmp_path / "out.json"
    options = ["--chain", "ccl", "--sequence", sequence, "--backend", "cpu", "--threads", "2", "--json", str(result)]
    done = CliRunner().invoke(app, ["process", str(file), *options])
    assert done.exit_code == 0, done.output
    events = json.loads(result.read_text())["per_event"]
    for name in NAMES:
        assert [event[name] for event in events] == expected(name)
    assert [event["components"] for event in events] == [len(areas) for areas in expected("area")]
    assert [event["features"] for event in events] == [event["components"] for event in events]


def test_labels_are_in_the_results_of_the_sequence_that_delivers_them(file: Path) -> None:
    fields = ["rows.runs_of_row", "runs.begin", "runs.end", "runs.label"]
    events = hltnode.process(file, fields, chain="ccl", sequence="labelled_images", backend="cpu", threads=1)
    for event, image in zip(events, IMAGES, strict=True):
        per_row = np.asarray(event.rows.runs_of_row)
        runs = np.zeros(len(event.runs.begin), [("begin", "u4"), ("end", "u4")])
        runs["begin"], runs["end"] = event.runs.begin, event.runs.end
        found = label_image(image.shape, per_row, runs, np.asarray(event.runs.label))
        np.testing.assert_array_equal(found, expected_labels(image))


def test_arrays_have_the_features_as_fields(file: Path) -> None:
    events = hltnode.process(file, ["features.area", "features.right"], chain="ccl", backend="cpu", threads=1)
    assert events.features.area.to_list() == expected("area")
    assert events.features.right.to_list() == expected("right")
