"""Sparse images as raw banks: lists of foreground pixels (docs/formats/pixel-lists.md)."""

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.imaging.strips import MAX_SIDE, is_image_source, strip_source
from hltnode.protocol.errors import BankError, RejectReason
from hltnode.protocol.raw_data.data_parts import parse_part, split
from hltnode.protocol.raw_data.raw_bank import RawBank

PIXEL_LIST_TYPE = 2
"""Bank type of a list of pixels."""
PIXEL_LIST_VERSION = 1
PIXEL_BYTES = 4
MAX_PIXELS = 1 << 16
"""Pixels of an image that is labelled. A strip of 1 bit a pixel holds more of them in as many bytes if every 32nd pixel
is foreground."""
# u32 width in pixels, u32 height in pixels.
_IMAGE = struct.Struct("<II")
_EMPTY = struct.Struct("<IIIIII")


def encode_pixels(pixels: NDArray[Any], width: int, height: int, per_bank: int | None = None) -> list[RawBank]:
    """The banks of the foreground pixels of an image, in the order of the list.

    pixels: integers [n, 2], column and row of each. per_bank: None for the most that fit in a bank. Raises ValueError
    for pixels outside of the image, and for sides below 1 or above MAX_SIDE; BankError for lists that do not fit.
    """
    if not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE):
        raise ValueError(f"an image of {width} x {height} pixels: each side 1 to {MAX_SIDE} expected")
    if pixels.ndim != 2 or pixels.shape[1] != 2 or ((pixels < 0) | (pixels >= (width, height))).any():
        raise ValueError(f"pixels of shape {pixels.shape}: [n, 2] expected, all in {width} x {height} pixels")
    if not len(pixels):
        empty = _EMPTY.pack(0, 0, 0, PIXEL_BYTES, width, height)
        return [RawBank(PIXEL_LIST_TYPE, PIXEL_LIST_VERSION, strip_source(0), memoryview(empty))]
    units = np.ascontiguousarray(pixels, "<u2").view(np.uint8).reshape(-1, PIXEL_BYTES)
    return [
        RawBank(PIXEL_LIST_TYPE, PIXEL_LIST_VERSION, strip_source(number), memoryview(payload))
        for number, payload in enumerate(split(units, _IMAGE.pack(width, height), per_bank))
    ]


def pixels_of(image: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The foreground pixels of an image, [n, 2] column and row, in raster order."""
    return np.argwhere(image)[:, ::-1]


def decode_pixels(banks: Iterable[RawBank]) -> tuple[NDArray[np.uint16], int, int]:
    """The list of an event: u16[n, 2] column and row, width and height.

    Raises BankError for a bank that is no list, and for banks of different images.
    """
    lists = []
    shapes = set()
    for bank in sorted((bank for bank in banks if is_image_source(bank.source_id)), key=lambda bank: bank.source_id):
        if (bank.type, bank.version) != (PIXEL_LIST_TYPE, PIXEL_LIST_VERSION):
            raise BankError(RejectReason.MALFORMED, f"type {bank.type}, version {bank.version}: no list of pixels")
        if len(bank.payload) == _EMPTY.size and _EMPTY.unpack(bank.payload)[:4] == (0, 0, 0, PIXEL_BYTES):
            shapes.add((0, *_EMPTY.unpack(bank.payload)[4:]))
            continue
        part = parse_part(bank.payload, _IMAGE.size)
        if part.units.shape[1] != PIXEL_BYTES:
            raise BankError(RejectReason.BAD_SIZE, f"pixels of {part.units.shape[1]} bytes, expected {PIXEL_BYTES}")
        shapes.add((part.total, *_IMAGE.unpack(part.own)))
        lists.append(part.units.view("<u2"))
    if len(shapes) != 1:
        raise BankError(RejectReason.MALFORMED, f"banks of {len(shapes)} images, expected one")
    _, width, height = shapes.pop()
    return (np.concatenate(lists) if lists else np.zeros((0, 2), np.uint16)), width, height
