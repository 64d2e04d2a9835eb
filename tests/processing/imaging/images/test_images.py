"""ccl_read_headers, ccl_place_images, ccl_assemble_rows: each wrong strip has its flag, and its event is kept."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.strips import MAX_SIDE, STRIP_TYPE, VERSION, encode_image, strip_source
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.imaging.component_oracle import assert_as_expected
from tests.processing.imaging.image_events import label_banks, label_images, mep_of_images, run_chain

IMAGE = np.random.default_rng(4).random((12, 45)) < 0.5
"""Four strips of three rows."""
ROWS = 3

Change = Callable[[list[RawBank]], Sequence[RawBank]]


def strip(
    number: int,
    first: int,
    count: int,
    total: int,
    width: int,
    *,
    bits: int = 1,
    unit_bytes: int | None = None,
    held: int | None = None,
) -> RawBank:
    """A strip with any header; all of its pixels are set."""
    unit_bytes = -(-width * bits // 32) * 4 if unit_bytes is None else unit_bytes
    payload = struct.pack("<IIIIII", first, count, total, unit_bytes, width, bits)
    payload += b"\xff" * (count * unit_bytes if held is None else held)
    return RawBank(STRIP_TYPE, VERSION, strip_source(number), memoryview(payload))


def of_type(index: int, kind: int) -> Change:
    return lambda banks: [bank._replace(type=kind) if i == index else bank for i, bank in enumerate(banks)]


def with_more(bank: RawBank) -> Change:
    return lambda banks: [*banks, bank]


def without(*indices: int) -> Change:
    return lambda banks: [bank for i, bank in enumerate(banks) if i not in indices]


@pytest.mark.parametrize(
    ("change", "flags"),
    [
        (lambda banks: banks, []),
        (lambda banks: banks[::-1], []),
        (lambda _: [], ["NO_IMAGE"]),
        (without(3), ["MISSING_ROWS"]),
        (without(1, 2), ["MISSING_ROWS"]),
        (without(0, 1, 2), ["MISSING_ROWS"]),
        (with_more(strip(9, 0, 1, 12, 45)), ["OVERLAPPING_STRIPS"]),
        (with_more(strip(9, 11, 1, 12, 45)), ["OVERLAPPING_STRIPS"]),
        (with_more(strip(9, 0, 1, 13, 45)), ["STRIP_MISMATCH"]),
        (with_more(strip(9, 0, 1, 12, 46)), ["STRIP_MISMATCH"]),
        (with_more(strip(9, 0, 1, 12, 45, bits=8)), ["STRIP_MISMATCH"]),
        (with_more(strip(9, 0, 1, 12, 0, unit_bytes=4)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 0, 12, 45)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1, 0, 45)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1, 12, 45, bits=0)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1, 12, 45, bits=2)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1, 12, 45, bits=16)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1, 12, 45, unit_bytes=0)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1, 12, 45, unit_bytes=12)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1, 12, 45, unit_bytes=4)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1, 12, 45, held=7)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1, 12, 45, held=9)), ["BAD_STRIP"]),
        (with_more(strip(9, 12, 1, 12, 45)), ["BAD_STRIP"]),
        (with_more(strip(9, 11, 2, 12, 45)), ["BAD_STRIP"]),
        (with_more(strip(9, 0xFFFFFFFF, 1, 12, 45)), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1 << 29, 1 << 30, 45, held=0)), ["BAD_STRIP"]),
        # The product of rows and bytes wraps around 32 bits to the size that is there.
        (with_more(strip(9, 0, (1 << 29) + 1, 1 << 30, 45, held=8)), ["BAD_STRIP"]),
        # So does the number of bits of a row.
        (with_more(strip(9, 0, 1, 12, (1 << 29) + 1, bits=8, unit_bytes=4)), ["BAD_STRIP"]),
        (with_more(RawBank(STRIP_TYPE, VERSION, strip_source(9), memoryview(bytes(23)))), ["BAD_STRIP"]),
        (with_more(RawBank(STRIP_TYPE, VERSION, strip_source(9), memoryview(b""))), ["BAD_STRIP"]),
        (with_more(strip(9, 0, 1, 12, 45)._replace(type=2)), ["BANK_ERROR"]),
        (with_more(strip(9, 0, 1, 12, 45)._replace(version=2)), ["BANK_ERROR"]),
        (with_more(strip(0, 0, 3, 12, 45)), ["BANK_ERROR", "MISSING_ROWS"]),
        (of_type(0, 240), ["BANK_ERROR", "MISSING_ROWS"]),
        (lambda _: [strip(0, 0, 1, 1, MAX_SIDE)], []),
        (lambda _: [strip(0, 0, 1, 1, MAX_SIDE + 1)], ["IMAGE_TOO_LARGE"]),
        (lambda _: [strip(0, 0, MAX_SIDE // 2, MAX_SIDE, 1)], ["MISSING_ROWS"]),
        (lambda _: [strip(0, 0, 1, 4096, MAX_SIDE)], ["MISSING_ROWS"]),
        (lambda _: [strip(0, 0, 1, 4097, MAX_SIDE)], ["MISSING_ROWS", "IMAGE_TOO_LARGE"]),
        (lambda _: [strip(0, 0, MAX_SIDE // 2 + 1, MAX_SIDE + 1, 1)], ["MISSING_ROWS", "IMAGE_TOO_LARGE"]),
    ],
)
def test_an_odd_event_has_its_flags_and_its_neighbours_none(change: Change, flags: list[str]) -> None:
    usual = encode_image(IMAGE, ROWS)
    before, found, after = label_banks([usual, change(usual), usual])
    assert found.flag_names == flags
    # All of them are errors, so that the event goes to the error stream.
    assert bool(found.flags & CHAIN.flag_table.errors) == bool(flags)
    for neighbour in (before, after):
        assert_as_expected(neighbour, IMAGE)


def test_rows_of_absent_strips_are_background() -> None:
    banks = encode_image(IMAGE, ROWS)
    (found,) = label_banks([[banks[0], banks[3]]])
    image = IMAGE.copy()
    image[3:9] = False
    assert found.flag_names == ["MISSING_ROWS"]
    assert_as_expected(found, image, flags=found.flags)


@pytest.mark.parametrize(("total", "labelled"), [(6, True), (7, False)])
def test_an_image_is_labelled_if_half_of_its_rows_are_there(total: int, labelled: bool) -> None:
    (found,) = label_banks([[strip(0, 1, 3, total, 40)]])
    assert found.flag_names == ["MISSING_ROWS"]
    assert found.labels.shape == ((total, 40) if labelled else (0, 0))
    assert found.n_components == int(labelled)


def test_of_rows_in_two_strips_those_of_the_lower_source_count() -> None:
    banks = encode_image(IMAGE, ROWS)
    full = strip(9, 3, 9, 12, 45)
    (found,) = label_banks([[*banks, full]])
    assert_as_expected(found, IMAGE, flags=found.flags)
    # Without its second strip, the other rows come from the strip of all.
    (found,) = label_banks([[banks[0], *banks[2:], full]])
    image = IMAGE.copy()
    image[3:6] = True
    assert found.flag_names == ["OVERLAPPING_STRIPS"]
    assert_as_expected(found, image, flags=found.flags)


def test_the_first_usable_strip_gives_the_shape_of_the_image() -> None:
    banks = encode_image(IMAGE, ROWS)
    (found,) = label_banks([[strip(0, 0, 3, 12, 46), *banks[1:]]])
    assert found.flag_names == ["STRIP_MISMATCH", "MISSING_ROWS"]
    assert found.labels.shape == (0, 0)
    (found,) = label_banks([[strip(0, 0, 3, 12, 0, unit_bytes=8), *banks[1:]]])
    image = IMAGE.copy()
    image[:3] = False
    assert found.flag_names == ["BAD_STRIP", "MISSING_ROWS"]
    assert_as_expected(found, image, flags=found.flags)


def test_bits_behind_the_width_are_not_part_of_the_image() -> None:
    for bits, pixels in ((1, 1), (8, 255)):
        (found,) = label_banks([[strip(0, 0, 2, 2, 33, bits=bits)]])
        assert found.features["area"].tolist() == [66]
        assert found.features["intensity"].tolist() == [66 * pixels]


def test_images_of_different_shapes_share_a_batch() -> None:
    rng = np.random.default_rng(5)
    images = [rng.random(shape) < 0.5 for shape in ((1, 1), (300, 7), (2, 500), (64, 64))]
    for found, image in zip(label_images(images, rows_per_strip=2), images, strict=True):
        assert_as_expected(found, image)


def test_the_image_with_the_most_runs_fits_in_a_batch_of_its_size() -> None:
    image = np.zeros((64, 512), np.bool_)
    image[:, ::2] = True
    (found,) = label_images([image])
    assert (found.n_components, found.flags) == (256, 0)


def test_the_number_of_an_event_is_that_of_its_mep() -> None:
    meps = [mep_of_images([IMAGE], first_event=0xFFFF_FFFF), mep_of_images([IMAGE] * 3, first_event=0xFFFF_FFFE)]
    assert [event.number for event in run_chain(meps)[0]] == [0xFFFF_FFFF, *range(0xFFFF_FFFE, 0x1_0000_0001)]


def test_the_flags_of_the_framework_stay() -> None:
    (found,) = label_banks([encode_image(IMAGE)], flags=EventFlag.INCOMPLETE)
    assert found.flags == EventFlag.INCOMPLETE
    assert_as_expected(found, IMAGE, flags=EventFlag.INCOMPLETE)
