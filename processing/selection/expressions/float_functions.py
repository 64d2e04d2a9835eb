"""The functions of functions.cuh in NumPy, bit-identical: f32[n] -> f32[n]."""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import F32

Floats = NDArray[np.float32]

_f = np.float32
_INFINITY = _f(np.inf)
_NAN = _f(np.nan)
_PI = _f(3.14159265358979)


def minimum(a: Floats, b: Floats) -> Floats:
    """hlt::lines::minimum."""
    return np.where((a < b) | (a != a), a, b)


def maximum(a: Floats, b: Floats) -> Floats:
    """hlt::lines::maximum."""
    return np.where((a > b) | (a != a), a, b)


def atan2(y: Floats, x: Floats) -> Floats:
    """hlt::atan2_approximate."""
    abs_x, abs_y = np.where(x < 0, -x, x), np.where(y < 0, -y, y)
    steep = abs_y > abs_x
    larger, smaller = np.where(steep, abs_y, abs_x), np.where(steep, abs_x, abs_y)
    t = np.where(larger > 0, smaller / larger, _f(0))
    s = t * t
    angle = np.full_like(s, -0.01172120)
    for coefficient, sign in ((0.05265332, 1), (0.11643287, -1), (0.19354346, 1), (0.33262347, -1), (0.99997726, 1)):
        angle = angle * s + _f(coefficient) if sign > 0 else angle * s - _f(coefficient)
    angle = angle * t
    angle = np.where(steep, _f(0.5) * _PI - angle, angle)
    angle = np.where(x < 0, _PI - angle, angle)
    return np.where(y < 0, -angle, angle)


def _logarithm(x: Floats) -> Floats:
    """hlt::logarithm."""
    bits = x.view(np.uint32)
    mantissa = bits & np.uint32(0x7FFFFF)
    upper = mantissa > np.uint32(0x3504F3)
    m = (mantissa | np.where(upper, np.uint32(0x3F000000), np.uint32(0x3F800000))).view(F32) - _f(1)
    exponent = ((bits >> np.uint32(23) & np.uint32(0xFF)).astype(np.int32) - 127 + upper.astype(np.int32)).astype(F32)
    p = np.full_like(m, 7.0376836292e-2)
    for coefficient, sign in (
        *((1.1514610310e-1, -1), (1.1676998740e-1, 1), (1.2420140846e-1, -1), (1.4249322787e-1, 1)),
        *((1.6668057665e-1, -1), (2.0000714765e-1, 1), (2.4999993993e-1, -1), (3.3333331174e-1, 1)),
    ):
        p = p * m + _f(coefficient) if sign > 0 else p * m - _f(coefficient)
    m2 = m * m
    result: Floats = m + (p * m * m2 + exponent * _f(-2.12194440e-4) - _f(0.5) * m2) + exponent * _f(0.693359375)
    return result


def logarithm(x: Floats) -> Floats:
    """hlt::lines::natural_logarithm."""
    small = x < _f(1.17549435e-38)
    inside = np.where((x > 0) & (x < _INFINITY), np.where(small, x * _f(8388608), x), _f(1))
    result = _logarithm(inside) - np.where(small, _f(15.9423847), _f(0))
    return np.where(x > 0, np.where(x < _INFINITY, result, _INFINITY), np.where(x == 0, -_INFINITY, _NAN))


def exponential(x: Floats) -> Floats:
    """hlt::lines::exponential."""
    lowest, highest = _f(-87), _f(88)
    inside = np.where((x > lowest) & (x < highest), x, _f(0))
    exponent = (inside * _f(1.44269504) + np.where(inside < 0, _f(-0.5), _f(0.5))).astype(np.int32)
    n = exponent.astype(F32)
    r = (inside - n * _f(0.693145752)) - n * _f(1.42860677e-6)
    one = _f(1)
    p = np.full_like(r, one / _f(720))
    for coefficient in (one / _f(120), one / _f(24), one / _f(6), _f(0.5), one, one):
        p = p * r + coefficient
    result = p * ((exponent + 127).astype(np.uint32) << np.uint32(23)).view(F32)
    return np.where(x < highest, np.where(x > lowest, result, _f(0)), np.where(x >= highest, _INFINITY, _NAN))
