"""Banks of the luminometer PLUME."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.protocol import RejectReason
from hltnode.protocol.lhcb.banks.plume import LUMI_CHANNELS, MAX_ADC, N_CHANNELS, decode_plume, encode_plume
from hltnode.protocol.lhcb.errors import PlumeBankError


def test_the_first_bit_is_that_of_channel_0_and_words_are_big_endian() -> None:
    over, adc = np.zeros(64, np.bool_), np.zeros(64, int)
    over[[0, 33]] = True
    adc[[0, 1, 63]] = 0xABC, 0xDEF, 0x123
    bank = encode_plume(over, adc)
    words = np.frombuffer(bank.payload, ">u4").tolist()
    assert (bank.type, bank.version, bank.source_id, len(words)) == (84, 1, 0x5001, 26)
    assert words[:3] == [0x8000_0000, 0x4000_0000, 0xABCD_EF00]
    assert words[-1] == 0x123
    assert LUMI_CHANNELS[21:23] == (21, 32)


def test_values_come_back_as_written() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        over, adc = rng.random(N_CHANNELS) < 0.3, rng.integers(0, MAX_ADC + 1, N_CHANNELS)
        found_over, found_adc = decode_plume(encode_plume(over, adc))
        np.testing.assert_array_equal(found_over, over)
        np.testing.assert_array_equal(found_adc, adc)


def test_other_banks_are_refused() -> None:
    good = encode_plume(np.zeros(64, np.bool_), np.zeros(64, int))
    for bank, reason in (
        (good._replace(type=21), RejectReason.MISMATCH),
        (good._replace(version=2), RejectReason.BAD_VERSION),
        (good._replace(payload=good.payload[:-4]), RejectReason.BAD_SIZE),
        (good._replace(payload=memoryview(bytes(good.payload) + bytes(4))), RejectReason.BAD_SIZE),
    ):
        with pytest.raises(PlumeBankError) as error:
            decode_plume(bank)
        assert error.value.reason == reason


def test_values_that_do_not_fit_are_not_written() -> None:
    none = np.zeros(64, np.bool_)
    for over, adc in ((none, [4096] * 64), (none, [-1] * 64), (none, [0] * 63), (none[:60], [0] * 64)):
        with pytest.raises(PlumeBankError):
            encode_plume(over, adc)
