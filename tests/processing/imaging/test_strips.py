"""Images become banks of strips and images again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.readout import IMAGE_READOUT, ImageBankType
from hltnode.processing.imaging.strips import (
    IMAGE_SUBDETECTORS,
    MAX_SIDE,
    STRIP_TYPE,
    decode_image,
    encode_image,
    strip_source,
)
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.errors import BankError
from hltnode.protocol.raw_data.bank_types import RESERVED_TYPES, TYPES_OF_NODE, USER_TYPES, BankType
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE, RawBank
from hltnode.protocol.raw_data.source_id import TRIGGER_SUBDETECTOR, USER_SUBDETECTORS


@pytest.mark.parametrize("shape", [(1, 1), (3, 31), (5, 32), (7, 33), (40, 100)])
@pytest.mark.parametrize("rows", [None, 1, 3])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8])
def test_an_image_is_whole_again(shape: tuple[int, int], rows: int | None, dtype: type[Any]) -> None:
    image: NDArray[Any] = np.random.default_rng(1).integers(0, 256 if dtype is np.uint8 else 2, shape).astype(dtype)
    found = decode_image(encode_image(image, rows))
    assert np.array_equal(found.pixels, image)
    assert (found.bits, found.missing, found.overlapping, found.refused) == (8 if dtype is np.uint8 else 1, 0, 0, ())


def test_8192_by_8192_pixels_of_1_bit_are_256_sources_of_32_rows() -> None:
    banks = encode_image(np.zeros((8192, 8192), np.bool_))
    assert len(banks) == len({bank.source_id for bank in banks}) == 256
    assert {len(bank.payload) for bank in banks} == {24 + 32 * 1024}


def test_the_commands_on_files_take_an_image_of_8192_by_8192_pixels() -> None:
    mep = encode_mep(CHAIN, [encode_image(np.zeros((8192, 8192), np.bool_))])
    assert mep.data.nbytes > BatchLimits(input_bytes=4 << 20).input_bytes
    trigger = CHAIN.load_trigger(None)
    assert mep.data.nbytes <= CHAIN.limits_for_files(BatchLimits(input_bytes=4 << 20), trigger).input_bytes
    assert CHAIN.limits_for_files(BatchLimits(input_bytes=1 << 30), trigger).input_bytes == 1 << 30


def test_they_take_larger_images_if_the_sequence_labels_them() -> None:
    mep = encode_mep(CHAIN, [encode_image(np.zeros((16384, 16384), np.bool_))])
    limits = BatchLimits(input_bytes=4 << 20)
    assert mep.data.nbytes > CHAIN.limits_for_files(limits, CHAIN.load_trigger(None)).input_bytes
    trigger = TriggerConfig.from_toml(f"[sequence.ccl_place_images]\nmax_pixels = {1 << 28}\n", CHAIN.menu)
    assert mep.data.nbytes <= CHAIN.limits_for_files(limits, trigger).input_bytes


def test_the_largest_image_of_8_bits_has_a_source_for_each_strip() -> None:
    last = MAX_SIDE // 2 - 1
    assert strip_source(last) == (IMAGE_SUBDETECTORS[-1] << 11 | 2047)
    with pytest.raises(BankError, match="no source for strip 8192"):
        strip_source(last + 1)
    two_rows, three_rows = (24 + rows * MAX_SIDE for rows in (2, 4))
    assert two_rows <= MAX_PAYLOAD_SIZE < three_rows


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((0, 4), np.bool_),
        np.zeros((4, 0), np.uint8),
        np.zeros((1, MAX_SIDE + 1), np.bool_),
        np.zeros((MAX_SIDE + 1, 1), np.bool_),
        np.zeros((4, 4), np.uint16),
        np.zeros(4, np.bool_),
    ],
)
def test_an_array_that_is_no_image_is_refused(image: np.ndarray) -> None:
    with pytest.raises(ValueError, match="bool or u8"):
        encode_image(image)


def test_strips_that_are_missing_or_wrong_are_counted_and_named() -> None:
    image = np.random.default_rng(2).random((8, 40)) < 0.5
    banks = encode_image(image, 2)
    wrong = [
        banks[1]._replace(version=2),
        banks[2]._replace(payload=banks[2].payload[:-1]),
        RawBank(7, 1, banks[3].source_id, banks[3].payload),
    ]
    found = decode_image([banks[0], *wrong, RawBank(STRIP_TYPE, 1, 0, memoryview(b""))])
    assert np.array_equal(found.pixels[:2], image[:2])
    assert found.missing == 6
    assert [reason.split(":")[0] for reason in found.refused] == [f"source {bank.source_id}" for bank in wrong]
    with pytest.raises(BankError, match=r"no usable strip: source 2049: type 1, version 2"):
        decode_image([wrong[0]])


def test_each_strip_is_a_source_and_odin_is_kept_apart() -> None:
    strips = encode_image(np.ones((4, 9), np.bool_), 2)
    odin = RawBank(BankType.ODIN, 7, 0, memoryview(bytes(40)))
    other = RawBank(200, 1, USER_SUBDETECTORS[0] << 11, memoryview(b"x"))
    assert [IMAGE_READOUT.source_of(bank) for bank in (odin, *strips, other)] == [0, 2048, 2049, None]
    mep = encode_mep(CHAIN, [[odin, *strips, other], strips[:1]], first_event_id=9)
    mfps = {source: Mfp.parse(mep.data[at : at + size].data) for source, at, size in mep.fragments}
    assert {source: [bank is not None for bank in mfp.banks()] for source, mfp in mfps.items()} == {
        2048: [True, True],
        2049: [True, False],
    }
    assert mep.unknown_types == {200}


def test_several_banks_of_a_strip_become_an_error_bank_with_the_first_payload() -> None:
    strip = RawBank(STRIP_TYPE, 1, strip_source(0), memoryview(b"first"))
    mep = encode_mep(CHAIN, [[strip, strip._replace(payload=memoryview(b"second"))]])
    [(_, at, size)] = mep.fragments
    [found] = Mfp.parse(mep.data[at : at + size].data).banks()
    assert found is not None
    assert (found.type, bytes(found.payload)) == (ImageBankType.SEVERAL_STRIPS, b"first")


@pytest.mark.parametrize("kind", sorted(TYPES_OF_NODE))
def test_banks_that_a_node_wrote_are_not_read_again(kind: int) -> None:
    assert IMAGE_READOUT.source_of(RawBank(kind, 1, strip_source(0), memoryview(b""))) is None


def test_the_numbers_of_the_chain_have_no_other_owner() -> None:
    own = {int(each) for each in ImageBankType}
    assert own.isdisjoint(RESERVED_TYPES)
    assert own.isdisjoint(USER_TYPES)
    assert set(IMAGE_SUBDETECTORS).isdisjoint({0, TRIGGER_SUBDETECTOR, *USER_SUBDETECTORS})
