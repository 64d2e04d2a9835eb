"""The gallery has the pictures of `make pictures`, and no page has another one or an old one."""

from __future__ import annotations

import re
from pathlib import Path

from PIL import Image

from tools.take_pictures import IMAGES, MAX_BYTES, PICTURES, WIDTH

ROOT = Path(__file__).resolve().parents[2]
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+\.png)\)")


def test_the_gallery_shows_each_picture_of_the_script_once_with_a_description() -> None:
    found = PICTURE.findall((ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))
    assert sorted(address for _, address in found) == sorted(f"images/{name}.png" for name in PICTURES)
    assert all(len(description) > 20 for description, _ in found)


def test_the_pictures_are_those_of_the_script_and_small() -> None:
    assert {path.stem for path in IMAGES.glob("*.png")} == set(PICTURES)
    for path in IMAGES.glob("*.png"):
        assert path.stat().st_size < MAX_BYTES, path.name
        with Image.open(path) as picture:
            assert picture.width == WIDTH, path.name


def test_pages_show_pictures_that_exist() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = [(page, address) for page in pages for _, address in PICTURE.findall(page.read_text(encoding="utf-8"))]
    assert len(shown) > len(PICTURES)
    assert [address for page, address in shown if not (page.parent / address).is_file()] == []
