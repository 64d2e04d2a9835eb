"""Routing bits: regular expressions on line names choose the streams of an event."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

ROUTING_WORDS = 3
"""Number of words: first level, spare, second level, 32 bits each."""
LUMI_BIT = 1
"""Events with this bit carry a luminosity summary."""
PHYSICS_BIT = 14
READOUT_ERROR_BIT = 25
"""Bit of unreadable events. No line sets it."""

RoutingRules = Mapping[int, str]
"""A line sets a bit if the regular expression of the bit matches its whole name."""

EVERY_LINE: RoutingRules = {PHYSICS_BIT: r".*"}


def routing_of_lines(rules: RoutingRules, lines: Sequence[str]) -> NDArray[np.uint32]:
    """The words that each line sets, u32[lines, ROUTING_WORDS]. Raises ValueError, which names the bit."""
    words = np.zeros((len(lines), ROUTING_WORDS), dtype=np.uint32)
    for bit, pattern in rules.items():
        if not 0 <= bit < 32 * ROUTING_WORDS or bit == READOUT_ERROR_BIT:
            raise ValueError(
                f"routing bit {bit}: lines may set bits 0 to {32 * ROUTING_WORDS - 1}, except {READOUT_ERROR_BIT}"
            )
        try:
            matches = [re.fullmatch(pattern, name) is not None for name in lines]
        except re.error as error:
            raise ValueError(f"routing bit {bit}: {pattern!r} is not a regular expression: {error}") from error
        words[matches, bit // 32] |= np.uint32(1 << bit % 32)
    return words
