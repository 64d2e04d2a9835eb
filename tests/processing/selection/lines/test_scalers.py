"""The host part of the deterministic scalers."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.lines.scalers import mix, scaler_limit, scaler_seed
from tests.processing.selection.lines.scalers_oracle import scaler_accepts
from tests.processing.selection.toy_detector import tracks


def test_mix_of_one_follows_the_published_rounds() -> None:
    # docs/physics/selection-lines.md, round by round; the first sum is 0x10001.
    state = 0x10001 ^ 0x10001 >> 13
    state += state << 4
    state ^= state >> 7
    state = state + (state << 10) & 0xFFFF_FFFF
    state ^= state >> 5
    state = state + (state << 8) & 0xFFFF_FFFF
    state ^= state >> 16
    assert mix(1) == state


def test_the_seed_of_an_empty_text_is_its_length() -> None:
    assert scaler_seed("") == 0


def test_a_text_of_one_word_is_mixed_once() -> None:
    assert scaler_seed("Line") == mix(4 + int.from_bytes(b"Line", "little"))


def test_a_text_is_padded_in_front_and_starts_from_its_own_length() -> None:
    first = mix(5 + int.from_bytes(b"   A", "little"))
    assert scaler_seed("A_pre") == mix(first + int.from_bytes(b"_pre", "little") & 0xFFFF_FFFF)


def test_prescale_and_postscale_of_a_line_are_independent() -> None:
    assert scaler_seed("Hlt1Line_pre") != scaler_seed("Hlt1Line_post")


def test_each_scaler_of_a_line_has_the_seed_of_its_own_name_and_its_own_limit() -> None:
    record = Line("Hlt1Line", tracks, lambda t: t.a > 0, prescale=0.25, postscale=0.5).record()
    assert record["prescale"].tolist() == (scaler_seed("Hlt1Line_pre"), 2**30, 0)
    assert record["postscale"].tolist() == (scaler_seed("Hlt1Line_post"), 2**31, 0)


EVENTS = ((1756366430954676, 328614, 3999014), (2**64 - 1, 2**32 - 1, 2**64 - 1), (0, 0, 0), (1, 6718861, 6001))
# The check values of docs/physics/selection-lines.md: seed, and state after each of the events. They were computed by a
# separate program in another language.
CHECK_VALUES = {
    "Hlt1TrackMVA_pre": (0xCD2348CE, 0x8C3FC604, 0xD0D89C42, 0x0B08D229, 0x8F78B402),
    "Hlt1TrackMVA_post": (0x17D9B5CD, 0xA5B2B5F0, 0xF0847799, 0xD58A75CF, 0xE61AC4B0),
    "Hlt1TwoTrackMVA_pre": (0x3A80D90B, 0x619A4C3F, 0xF4EECC14, 0x65E91C24, 0xDB049AF8),
    "Hlt1VeloMicroBias_post": (0x451C883E, 0x7B7DF9F5, 0x83153773, 0x00A29EA3, 0xB665A334),
    "Hlt1ODINNoBias_pre": (0x55E3DD26, 0x6F334260, 0xC068DB43, 0xEA669143, 0x3F282C62),
    "A_pre": (0x0B17A21F, 0x614FC141, 0xEC58844A, 0xB0BF7265, 0xEBB642FE),
}


@pytest.mark.parametrize("text", CHECK_VALUES)
def test_seeds_and_events_have_their_check_values(text: str) -> None:
    seed, *states = CHECK_VALUES[text]
    assert scaler_seed(text) == seed
    for (gps_time, run, event_id), expected in zip(EVENTS, states, strict=True):
        state = seed
        for word in (gps_time % 2**32, gps_time >> 32, run, event_id % 2**32, event_id >> 32):
            state = mix(state + word & 0xFFFF_FFFF)
        assert state == expected
        # The scale is the fraction of passing events: this one passes with a scale just above its state, not just
        # below.
        for scale in (np.float32(expected / 2**32), np.nextafter(np.float32(expected / 2**32), np.float32(1))):
            limit = scaler_limit(float(scale))
            passes = limit is None or expected < limit
            assert passes == scaler_accepts(text, float(scale), run=run, gps_time=gps_time, event_id=event_id)
            assert passes == (expected < int(float(scale) * 2**32))


@pytest.mark.parametrize(
    ("scale", "limit"),
    [
        (0.0, 0),
        (1e-4, 429496),
        (0.001, 4294967),
        (0.25, 2**30),
        (0.3, 1288490240),
        (0.5, 2**31),
        (1 - 2**-24, 2**32 - 256),
    ],
)
def test_limits_are_products_of_float32_numbers(scale: float, limit: int) -> None:
    assert scaler_limit(scale) == limit


@pytest.mark.parametrize("scale", [1.0, 1.0 - 1e-9])
def test_a_scale_that_is_one_in_float32_lets_everything_pass(scale: float) -> None:
    assert scaler_limit(scale) is None
