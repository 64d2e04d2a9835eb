"""Deterministic scalers: the same events pass on every machine and in every run (docs/physics/selection-lines.md).

The kernel continues the hash from the seed with the numbers of the event (scalers.cuh).
"""

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SHIFTS = ((16, 13), (4, 7), (10, 5), (8, 16))


def mix(state: int) -> int:
    """One round of the hash on a 32-bit word."""
    for left, right in _SHIFTS:
        state = state + (state << left) & 0xFFFF_FFFF
        state ^= state >> right
    return state


def scaler_seed(text: str) -> int:
    """The hash of a scaler's name: "<line name>_pre" or "<line name>_post", ASCII.

    It starts from the length; blanks in front pad the text to whole words.
    """
    padded = text.rjust(-(-len(text) // 4) * 4).encode("ascii")
    state = len(text)
    for (word,) in struct.iter_unpack("<I", padded):
        state = mix(state + word & 0xFFFF_FFFF)
    return state


def scaler_limit(scale: float) -> int | None:
    """An event passes if its hash is below this 32-bit number; None passes every event.

    Scales are float32, as is the product with 2**32 - 1, which is 2**32 there.
    """
    scale32 = np.float32(scale)
    return None if scale32 >= 1.0 else int(scale32 * np.float32(2**32 - 1))


def mix_words(seed: int, words: Sequence[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    """The hash of each event, modulo 2^32; `words` identify the event, u32[events] each."""
    state = np.full(len(words[0]), seed, np.uint32)
    for word in words:
        state = state + word
        for left, right in _SHIFTS:
            state = state + (state << np.uint32(left))
            state ^= state >> np.uint32(right)
    return state
