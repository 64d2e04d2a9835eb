"""A second implementation of the deterministic scaler of HLT1, in plain Python (docs/physics/selection-lines.md)."""

from __future__ import annotations

import numpy as np

WORD = 2**32


def _mixed(state: int) -> int:
    state = (state + (state << 16)) % WORD
    state = state ^ (state >> 13)
    state = (state + (state << 4)) % WORD
    state = state ^ (state >> 7)
    state = (state + (state << 10)) % WORD
    state = state ^ (state >> 5)
    state = (state + (state << 8)) % WORD
    return state ^ (state >> 16)


def scaler_accepts(text: str, scale: float, *, run: int, gps_time: int, event_id: int) -> bool:
    """Whether the scaler named `text` ("<line>_pre" or "<line>_post") accepts an event."""
    if np.float32(scale) >= 1.0:
        return True
    state = len(text)
    while len(text) % 4:
        text = " " + text
    words = [int.from_bytes(text[i : i + 4].encode(), "little") for i in range(0, len(text), 4)]
    words += [gps_time % WORD, gps_time // WORD, run, event_id % WORD, event_id // WORD]
    for word in words:
        state = _mixed((state + word) % WORD)
    return bool(state < int(np.float32(scale) * np.float32(WORD - 1)))
