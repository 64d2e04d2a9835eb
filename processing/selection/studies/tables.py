"""Rates as text."""

from collections.abc import Sequence
from typing import Any

Result = tuple[str, dict[str, Any]]
"""Name of a trigger configuration, and its result of `hltnode rates`."""

KHZ = 1e3
MEGABYTE = 1e6


def rates_text(results: Sequence[Result]) -> str:
    """A table of the lines of one configuration, or of two side by side, and a table of each scan."""
    return "\n\n".join([_lines(results), *(scan for name, result in results for scan in _scans(name, result))])


def with_interval(rate: float, low: float, high: float, digits: int = 1) -> str:
    """A value and the distances to the ends of its interval."""
    return f"{rate:.{digits}f} +{high - rate:.{digits}f} -{rate - low:.{digits}f}"


def rate_in_khz(of: dict[str, Any], prefix: str = "") -> str:
    """A rate of a JSON object with its interval."""
    rate = of[f"{prefix}hz" if prefix else "rate_hz"]
    return with_interval(*(hz / KHZ for hz in (rate, of[f"{prefix}low_hz"], of[f"{prefix}high_hz"])))


def _lines(results: Sequence[Result]) -> str:
    first = results[0][1]
    names = list(dict.fromkeys(name for _, result in results for name in result["lines"]))
    rows = [
        f"{first['events']} events, each for one bunch crossing of {first['crossing_rate_hz'] / 1e6:g} MHz; errors: "
        "68.3 % intervals",
        *(f"{name}: sequence {result['sequence']}, TCK {result['tck']}" for name, result in results),
    ]
    table = [
        ["line", *(title for name, _ in results for title in (f"{name}: rate [kHz]", "alone [kHz]", "kept [MB/s]"))],
        *([name, *(cell for _, result in results for cell in _cells(result["lines"].get(name)))] for name in names),
        ["total", *(cell for _, result in results for cell in _cells(result["total"]))],
    ]
    first_width, *widths = (max(map(len, column)) for column in zip(*table, strict=True))
    rows += [
        f"{name:<{first_width}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        for name, *cells in table
    ]
    return "\n".join(rows)


def _cells(of: dict[str, Any] | None) -> tuple[str, str, str]:
    if of is None:
        return "-", "-", "-"
    alone = rate_in_khz(of, "exclusive_") if "exclusive_hz" in of else ""
    return rate_in_khz(of), alone, f"{of['bytes_per_second'] / MEGABYTE:.0f}"


def _scans(name: str, result: dict[str, Any]) -> list[str]:
    texts = []
    for scan in result["scans"]:
        rows = [
            f"{name}: {scan['line']}.{scan['cut']}",
            f"{'value':>12}{'line [kHz]':>24}{'alone [kHz]':>24}{'all lines [kHz]':>24}{'kept [MB/s]':>13}",
        ]
        for point in scan["points"]:
            cells = "".join(f" {rate_in_khz(point[of]):>23}" for of in ("line", "exclusive", "total"))
            rows.append(f"{point['value']:>12g}{cells}{point['total']['bytes_per_second'] / MEGABYTE:>13.0f}")
        texts.append("\n".join(rows))
    return texts
