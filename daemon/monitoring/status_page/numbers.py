"""Numbers and times as people read them."""

import math
import time


def number(value: float) -> str:
    """A number with three digits and an SI prefix: 1234567 is "1.23 M"."""
    if not math.isfinite(value):
        return "–"
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            return f"{_three_digits(value / size)} {prefix}"
    return f"{_three_digits(value)} "


def _three_digits(value: float) -> str:
    digits = 0 if abs(value) >= 99.95 or value == int(value) else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{digits}f}"


def seconds(value: float | None) -> str:
    """A time in a suitable unit; None: never."""
    if value is None:
        return "never"
    if value < 1:
        return f"{value * 1e3:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.0f} h"


def latency(value: float | None) -> str:
    """A latency with three digits; None: none was measured."""
    if value is None:
        return "–"
    return f"{value * 1e3:.3g} ms" if value < 0.9995 else f"{value:.3g} s"


def counted(n: int, noun: str) -> str:
    """A number with its noun: `1 feeder`, `2 feeders`."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def utc(wall_s: float) -> str:
    """Date and time of a Unix time, without the zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(wall_s))
