"""Each line of the chain, and each of its bounds, decides alone on some event; fields and histograms are exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import hltnode
from hltnode.daemon.cli import app
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.lines.line_types import ComponentArea
from hltnode.processing.imaging.strips import encode_image
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import encode_banks
from tests.processing.imaging.image_events import label_images, mep_of_images, run_chain


def box(width: int, height: int, value: int = 1, n: int = 1) -> NDArray[np.uint8]:
    """`n` boxes of equal pixels beside each other in an image of 64 columns."""
    image = np.zeros((40, 64), np.uint8)
    for i in range(n):
        image[2 : 2 + height, 1 + i * (width + 1) : 1 + i * (width + 1) + width] = value
    return image


@pytest.mark.parametrize(
    ("line", "selected", "others"),
    [
        ('type = "ComponentCount"\nmin_components = 3\nmax_components = 4',
         [box(1, 1, n=3), box(1, 1, n=4)], [box(9, 9, n=2), box(1, 1, n=5)]),
        ('type = "ComponentArea"\nmin_area = 12\nmax_area = 20',
         [box(3, 4), box(4, 5)], [box(1, 11), box(3, 7), box(0, 0)]),
        ('type = "ComponentBox"\nmin_width = 5\nmax_width = 6', [box(5, 1), box(6, 30)], [box(4, 9), box(7, 2)]),
        ('type = "ComponentBox"\nmin_height = 5\nmax_height = 6', [box(1, 5), box(30, 6)], [box(9, 4), box(2, 7)]),
        ('type = "ComponentIntensity"\nmin_intensity = 600', [box(2, 3, 100), box(60, 10)], [box(5, 1, 119)]),
        ('type = "ComponentIntensity"\nmin_mean = 100', [box(1, 1, 100)], [box(30, 30, 99)]),
        ('type = "Passthrough"', [box(0, 0), box(1, 1)], []),
    ],
)  # fmt: skip
def test_each_bound_of_a_line_decides(line: str, selected: list[NDArray[Any]], others: list[NDArray[Any]]) -> None:
    found = label_images([*selected, *others], f'[[lines]]\nname = "Line"\n{line}')
    assert [event.lines for event in found] == [{"Line"}] * len(selected) + [set()] * len(others)
    assert [event.accepted for event in found] == [True] * len(selected) + [False] * len(others)


def test_the_default_line_keeps_events_with_a_component_of_1000_pixels() -> None:
    images = [box(50, 20), box(27, 37), box(9, 9, n=6)]
    found = label_images(images, '[[lines]]\ntype = "ComponentArea"\nname = "Large"\nmin_area = 1000')
    assert [event.accepted for event in found] == [True, False, False]
    (default,) = (line for line in CHAIN.menu.lines if line.name == "LargeComponent")
    assert isinstance(default, ComponentArea)
    assert default.min_area == 1000


@pytest.mark.parametrize(
    "line",
    [
        'type = "ComponentArea"\nmin_area = -1',
        'type = "ComponentBox"\nmax_width = 16385',
        'type = "ComponentIntensity"\nmin_mean = nan',
    ],
)
def test_a_bound_out_of_range_is_refused(line: str) -> None:
    with pytest.raises(TriggerConfigError, match=r"lines\[0\]\.m"):
        TriggerConfig.from_toml(f'[[lines]]\nname = "Line"\n{line}', CHAIN.menu)


def test_histograms_count_images_and_components() -> None:
    _, filled = run_chain([mep_of_images([box(3, 4, n=4), box(20, 1)])])
    width = filled["component_width"]
    assert width.entries == 5
    assert filled["component_height"].entries == 5
    assert filled["image_components_log2"].entries == 2
    # Two bins for each column: -0.5 to 255.5 in 128.
    assert width.bins[1] == 4
    assert width.bins[10] == 1


def test_components_are_fields_of_events(tmp_path: Path) -> None:
    file = tmp_path / "images.mdf"
    image = np.zeros((9, 9), np.uint8)
    image[2, 3:6] = (1, 2, 3)
    image[8, 8] = 255
    file.write_bytes(encode_record(encode_banks(encode_image(image)), run=1, checksum=False))
    names = ["area", "left", "top", "right", "bottom", "width", "height", "x", "y", "intensity", "mean_intensity",
             "centre_x", "centre_y", "sum_x", "sum_x_low", "sum_y_high", "weighted_x_low"]  # fmt: skip
    events = hltnode.process([file], [f"components.{name}" for name in names], chain="ccl", backend="cpu")
    (found,) = events.components.to_list()
    first, second = found
    assert first == {
        "area": 3, "left": 3, "top": 2, "right": 5, "bottom": 2, "width": 3, "height": 1, "x": 4.0, "y": 2.0,
        "intensity": 6.0, "mean_intensity": 2.0, "centre_x": pytest.approx(26 / 6), "centre_y": 2.0, "sum_x": 12.0,
        "sum_x_low": 12, "sum_y_high": 0, "weighted_x_low": 3 + 8 + 15,
    }  # fmt: skip
    assert (second["area"], second["intensity"], second["centre_x"]) == (1, 255.0, 8.0)


def test_the_centre_of_a_component_of_pixels_of_0_is_not_a_number(tmp_path: Path) -> None:
    file, trigger = tmp_path / "images.mdf", tmp_path / "t.toml"
    file.write_bytes(encode_record(encode_banks(encode_image(np.zeros((2, 2), np.uint8))), run=1, checksum=False))
    trigger.write_text("[sequence.ccl_find_runs]\nthreshold = 0\n")
    events = hltnode.process(
        [file], ["components.area", "components.centre_x"], chain="ccl", backend="cpu", trigger=trigger
    )
    ((found,),) = events.components.to_list()
    assert found["area"] == 4
    assert np.isnan(found["centre_x"])


def test_the_fields_of_the_chain_are_listed() -> None:
    listed = CliRunner().invoke(app, ["lines", "--fields", "--chain", "ccl"])
    assert listed.exit_code == 0, listed.output
    assert "mean_intensity" in listed.output
