"""Distinct values, order and ranges of integers; for some thousand values faster than NumPy's own functions."""

import numpy as np

from hltnode.processing.offline.arrays import Int64Array


def distinct(values: Int64Array) -> Int64Array:
    """The distinct values (not negative) by rising value."""
    ordered = np.sort(values)
    found: Int64Array = ordered[np.diff(ordered, prepend=-1) != 0]
    return found


def stable_order(values: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The order that sorts n values from 0 to 2**63 / (2 n) - 1, and the values so sorted.

    Sorting value and position in one number is faster than an indirect stable sort, and gives the same.
    """
    bits = len(values).bit_length()
    keys = np.sort(values << bits | np.arange(len(values)))
    return keys & (1 << bits) - 1, keys >> bits


def distinct_and_places(values: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The distinct values by rising value, and the index of each of `values` among them."""
    order, ordered = stable_order(values)
    is_new = np.diff(ordered, prepend=-1) != 0
    place = np.empty_like(order)
    place[order] = np.cumsum(is_new) - 1
    return ordered[is_new], place


def ranges(start: Int64Array, number: Int64Array) -> Int64Array:
    """start[0], start[0] + 1, ... (number[0] of them), then those of start[1] ..."""
    before = np.cumsum(number) - number
    counted: Int64Array = np.repeat(start - before, number) + np.arange(int(number.sum()))
    return counted
