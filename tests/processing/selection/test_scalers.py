"""The host's half of the deterministic scalers."""

from __future__ import annotations

import pytest

from hltnode.processing.selection.scalers import mix, scaler_limit, scaler_seed


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


@pytest.mark.parametrize(("scale", "limit"), [(0.0, 0), (0.5, 2**31), (0.25, 2**30), (1e-4, 429496)])
def test_limits_are_products_of_float32_numbers(scale: float, limit: int) -> None:
    assert scaler_limit(scale) == limit


@pytest.mark.parametrize("scale", [1.0, 1.0 - 1e-9])
def test_a_scale_that_is_one_in_float32_lets_everything_pass(scale: float) -> None:
    assert scaler_limit(scale) is None
