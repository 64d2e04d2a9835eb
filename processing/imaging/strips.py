"""Images as raw banks: strips of rows, each in a bank of its own source (docs/formats/image-strips.md)."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import BankError, RejectReason
from hltnode.protocol.raw_data.data_parts import DataPart, assemble, parse_part, split
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import MAX_NUMBER, source_id, subdetector_of

STRIP_TYPE = 1
"""Bank type of a strip."""
VERSION = 1
MAX_SIDE = 16384
"""Largest width and height in pixels. Coordinates have 16 bits, and run numbers of an image 31."""
IMAGE_SUBDETECTORS = range(1, 5)
"""Four sub-detectors have 8,192 sources; 16384 x 16384 pixels of 8 bits need 8,192 strips of two rows."""
# u32 width in pixels, u32 bits of a pixel.
_IMAGE = struct.Struct("<II")
IMAGE_HEADER_SIZE = _IMAGE.size
BITS = (1, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class StripImage:
    """An image from its strips.

    pixels: u8[height, width]; pixels of 1 bit are 0 or 1. bits: 1 or 8. missing, overlapping: numbers of rows. refused:
    why strips were left out.
    """

    pixels: NDArray[np.uint8]
    bits: int
    missing: int
    overlapping: int
    refused: tuple[str, ...]


def row_bytes(width: int, bits: int) -> int:
    """Bytes of a row, padded to words of 32 bits."""
    return -(-width * bits // 32) * 4


def strip_source(strip: int) -> int:
    """The source id of a strip. Raises BankError beyond the last one."""
    subdetector, number = divmod(strip, MAX_NUMBER + 1)
    if subdetector >= len(IMAGE_SUBDETECTORS):
        raise BankError(RejectReason.UNKNOWN_SOURCE, f"no source for strip {strip}")
    return source_id(IMAGE_SUBDETECTORS[subdetector], number)


def is_image_source(source: int) -> bool:
    """Whether a source sends strips."""
    return subdetector_of(source) in IMAGE_SUBDETECTORS


def encode_image(image: NDArray[Any], rows_per_strip: int | None = None) -> list[RawBank]:
    """The banks of an image, strip by strip.

    image: bool[height, width] for 1 bit a pixel, u8[height, width] for 8 bits. rows_per_strip: None for the largest
    power of two that fits in a bank. Raises BankError for strips that do not fit, and ValueError for other arrays.
    """
    if image.ndim != 2 or image.dtype not in (np.bool_, np.uint8) or not all(1 <= n <= MAX_SIDE for n in image.shape):
        raise ValueError(
            f"an image of shape {image.shape} and type {image.dtype}: bool or u8 [height, width] expected, "
            f"each side 1 to {MAX_SIDE}"
        )
    height, width = image.shape
    bits = 1 if image.dtype == np.bool_ else 8
    packed = np.packbits(image, axis=1, bitorder="little") if bits == 1 else image
    rows = np.zeros((height, row_bytes(width, bits)), np.uint8)
    rows[:, : packed.shape[1]] = packed
    return [
        RawBank(STRIP_TYPE, VERSION, strip_source(strip), memoryview(payload))
        for strip, payload in enumerate(split(rows, _IMAGE.pack(width, bits), rows_per_strip))
    ]


def decode_image(banks: Iterable[RawBank]) -> StripImage:
    """The image of an event; missing rows are 0. Raises BankError without a usable strip, or above MAX_SIDE."""
    parts: list[DataPart] = []
    refused = []
    for bank in sorted((bank for bank in banks if is_image_source(bank.source_id)), key=lambda bank: bank.source_id):
        try:
            parts.append(_strip(bank))
        except BankError as error:
            refused.append(f"source {bank.source_id}: {error}")
    if not parts:
        raise BankError(RejectReason.TRUNCATED, f"no usable strip: {'; '.join(refused[:3]) or 'no bank'}")
    width, bits = _IMAGE.unpack(parts[0].own)
    if width > MAX_SIDE or parts[0].total > MAX_SIDE:
        raise BankError(
            RejectReason.OVERSIZED, f"image of {width} x {parts[0].total} pixels: at most {MAX_SIDE} x {MAX_SIDE}"
        )
    found = assemble(parts, refused)
    pixels = np.unpackbits(found.units, axis=1, count=width, bitorder="little") if bits == 1 else found.units[:, :width]
    return StripImage(
        pixels=pixels, bits=bits, missing=found.missing, overlapping=found.overlapping, refused=found.refused
    )


def _strip(bank: RawBank) -> DataPart:
    if (bank.type, bank.version) != (STRIP_TYPE, VERSION):
        raise BankError(RejectReason.MALFORMED, f"type {bank.type}, version {bank.version}: no strip of version 1")
    part = parse_part(bank.payload, IMAGE_HEADER_SIZE)
    width, bits = _IMAGE.unpack(part.own)
    if width == 0 or bits not in BITS:
        raise BankError(RejectReason.MALFORMED, f"width {width}, {bits} bits a pixel: width above 0, 1 or 8 bits")
    if part.units.shape[1] != row_bytes(width, bits):
        raise BankError(RejectReason.BAD_SIZE, f"rows of {part.units.shape[1]} bytes for {width} pixels of {bits} bits")
    return part
