"""Count the blobs of a picture with a node: write a picture that scikit-image ships, later make a table of its blobs.

python examples/blobs_of_a_picture.py picture hubble_deep_field sky.png
python examples/blobs_of_a_picture.py table output/*_accepted_*.mdf --csv blobs.csv

Between the two commands, a node of the chain `ccl` labels the picture (docs/how-to/label-images.md).
"""

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import hltnode

SHOWN = 5
COLUMNS = ("event", "area", "left", "top", "right", "bottom", "x", "y")
Row = tuple[float, ...]


def write_picture(name: str, path: Path) -> tuple[int, int]:
    """Write a picture of scikit-image as a grey PNG; returns its width and height. Raises ValueError without it."""
    try:
        from PIL import Image
        from skimage import data
    except ImportError as error:
        raise ValueError("pictures need scikit-image: pip install 'hltnode[examples]'") from error
    if name not in data.__all__:
        raise ValueError(f"scikit-image has no picture {name!r}; try hubble_deep_field, cell or coins")
    with Image.fromarray(getattr(data, name)()) as picture:
        grey = picture.convert("L")
        grey.save(path)
        return grey.size


def blobs(paths: Sequence[Path]) -> Iterator[Row]:
    """A row of COLUMNS for each component: pixels, box, and the centre of the box, in pixels."""
    events = (event for path in paths for event in hltnode.open(path, chain="ccl"))
    for number, event in enumerate(events):
        values = event.lists["features"]
        boxes = (values[name].tolist() for name in ("area", "left", "top", "right", "bottom"))
        for area, left, top, right, bottom in zip(*boxes, strict=True):
            yield number, area, left, top, right, bottom, (left + right) / 2, (top + bottom) / 2


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Blobs of a picture, before and after a node.")
    commands = parser.add_subparsers(dest="command", required=True)
    picture = commands.add_parser("picture", help="write a picture of scikit-image as PNG")
    picture.add_argument("name", help="name in skimage.data, such as hubble_deep_field")
    picture.add_argument("png", type=Path, help="the PNG file")
    table = commands.add_parser("table", help="a table of the blobs in the files of a node")
    table.add_argument("files", nargs="+", type=Path, help="event files with the list `features`")
    table.add_argument("--csv", type=Path, help="file for the whole table")
    options = parser.parse_args(arguments)
    if options.command == "picture":
        width, height = write_picture(options.name, options.png)
        print(f"{options.png}: {width} x {height} pixels")
        return
    rows = list(blobs(options.files))
    if options.csv is not None:
        with options.csv.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])
    print(f"{len(rows)} blobs; the largest:")
    for row in sorted(rows, key=lambda row: -row[1])[:SHOWN]:
        print("  {1} pixels around column {6:g}, row {7:g}".format(*row))


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
