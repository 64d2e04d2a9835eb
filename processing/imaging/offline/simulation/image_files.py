"""Images from files: PNG, TIFF and what else Pillow reads, single ones or the folders of YACCLAB."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.imaging.strips import MAX_SIDE

SUFFIXES = (".png", ".tif", ".tiff", ".bmp", ".pgm", ".pbm", ".jpg", ".jpeg")
LIST_OF_FILES = "files.txt"
"""A folder of YACCLAB has a file of this name with the name of an image in each line."""


def image_files(path: Path) -> list[Path]:
    """The images of a file or a folder: those of its files.txt in that order, else all by name.

    Raises ValueError, which names the file or folder that is missing or has no image.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ValueError(f"{path}: no such file or folder")
    listing = path / LIST_OF_FILES
    if listing.is_file():
        names = [line.split(",")[0].strip() for line in listing.read_text(errors="replace").splitlines()]
        files = [path / name for name in names if name]
        for file in files:
            if not file.is_file():
                raise ValueError(f"{listing}: it names {file.name}, which is not in the folder")
    else:
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
    if not files:
        raise ValueError(f"{path}: no images; expected {LIST_OF_FILES} or files with {', '.join(SUFFIXES)}")
    return files


def read_image(path: Path) -> NDArray[np.uint8]:
    """The grey values of an image, u8[height, width]; a set pixel of a black-and-white image is 255.

    Grey values of 16 bits are scaled to 8. Raises ValueError, which names the file, for one that cannot be read or has
    more than MAX_SIDE rows or columns, and without Pillow.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ValueError(f"{path}: files of images need Pillow: pip install 'hltnode[images]'") from error
    # Pillow refuses images that are smaller than ours; the check of the sides below has the same purpose.
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        with Image.open(path) as image:
            if max(image.size) > MAX_SIDE:
                raise ValueError(f"{path}: {image.width} x {image.height} pixels, at most {MAX_SIDE} x {MAX_SIDE}")
            if image.mode.startswith("I;16") or image.mode == "I":
                return _scaled(np.asarray(image), path)
            return np.array(image.convert("L"), np.uint8)
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise ValueError(f"{path}: it cannot be read as an image: {error}") from error
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def _scaled(grey: NDArray[Any], path: Path) -> NDArray[np.uint8]:
    if grey.min() < 0 or grey.max() > 0xFFFF:
        raise ValueError(f"{path}: grey values from {grey.min()} to {grey.max()}, expected 0 to 65535")
    return (grey >> 8).astype(np.uint8)
