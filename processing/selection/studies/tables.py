"""Rates as text."""

from collections.abc import Sequence
from typing import Any

from hltnode.processing.selection.event_rate import frequency

Result = tuple[str, dict[str, Any]]
"""Name of a trigger configuration, and its result of `hltnode rates`."""

KHZ = 1e3
MEGABYTE = 1e6
ALONE = "alone [kHz]"


def rates_text(results: Sequence[Result], *, alone: bool = True) -> str:
    """A table of the lines of one configuration, or of two side by side, and a table of each scan.

    alone: whether the table has the rate of the crossings that a line alone accepts; without it, 80 columns suffice.
    """
    tables = [
        _lines(results, alone),
        *(_prefilters(name, result) for name, result in results if "prefilters" in result),
    ]
    return "\n\n".join([*tables, *(scan for name, result in results for scan in _scans(name, result))])


def with_interval(rate: float, low: float, high: float, digits: int = 1) -> str:
    """A value and the distances to the ends of its interval."""
    return f"{rate:.{digits}f} +{high - rate:.{digits}f} -{rate - low:.{digits}f}"


def rate_in_khz(of: dict[str, Any], prefix: str = "") -> str:
    """A rate of a JSON object with its interval."""
    rate = of[f"{prefix}hz" if prefix else "rate_hz"]
    return with_interval(*(hz / KHZ for hz in (rate, of[f"{prefix}low_hz"], of[f"{prefix}high_hz"])))


def _about_weights(of: dict[str, Any]) -> list[str]:
    if not of["sample"]["weighted"]:
        return []
    one = of["sample"]["largest_event_hz"] / KHZ
    return [f"an event of a kind that is not drawn more often counts {one:.1f} kHz: errors do not contain missing ones"]


def sequence_text(of: dict[str, Any]) -> str:
    """The sequence of a JSON object; a chain of one sequence has no name for it."""
    return f"sequence {of['sequence']}" if of["sequence"] else "the only sequence"


def events_text(of: dict[str, Any]) -> str:
    """The number of events of a JSON object."""
    return f"{of['events']} events with weights" if of["sample"]["weighted"] else f"{of['events']} events"


def needed_text(events: int, passed: float) -> str:
    """The events needed for an error of 10 %, to two digits; the least number where none passed."""
    digits = max(len(str(events)) - 2, 0)
    rounded = round(events, -digits)
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if rounded >= 10 * size:
            text = f"{rounded / size:g}{letter}"
            break
    else:
        text = str(rounded)
    return text if passed else f">{text}"


def _lines(results: Sequence[Result], alone: bool) -> str:
    first = results[0][1]
    names = list(dict.fromkeys(name for _, result in results for name in result["lines"]))
    rows = [
        *(f"warning: {text}" for text in [first["sample"]["warning"]] if text),
        f"{events_text(first)}, each for one {first['event']} of {frequency(first['crossing_rate_hz'])}; errors: "
        "68.3 % intervals",
        *_about_weights(first),
        "for 10 %: events of such a sample for which the error of the rate is 10 %",
        *(f"{name}: {sequence_text(result)}, TCK {result['tck']}" for name, result in results),
    ]
    table = [
        ["line", *(title for name, _ in results for title in _titles(name))],
        *([name, *(cell for _, result in results for cell in _cells(result["lines"].get(name)))] for name in names),
        ["total", *(cell for _, result in results for cell in _cells(result["total"]))],
    ]
    if not alone:
        left_out = {i + 1 for i, title in enumerate(table[0][1:]) if title == ALONE}
        table = [[cell for i, cell in enumerate(cells) if i not in left_out] for cells in table]
    first_width, *widths = (max(map(len, column)) for column in zip(*table, strict=True))
    rows += [
        f"{name:<{first_width}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        for name, *cells in table
    ]
    return "\n".join(rows)


def _titles(name: str) -> tuple[str, ...]:
    return f"{name}: rate [kHz]", "for 10 %", ALONE, "kept [MB/s]"


def _cells(of: dict[str, Any] | None) -> tuple[str, str, str, str]:
    if of is None:
        return "-", "-", "-", "-"
    alone = rate_in_khz(of, "exclusive_") if "exclusive_hz" in of else ""
    return (
        rate_in_khz(of),
        needed_text(of["events_for_10_percent"], of["events"]),
        alone,
        f"{of['bytes_per_second'] / MEGABYTE:.0f}",
    )


def _prefilters(name: str, result: dict[str, Any]) -> str:
    """The rate of the crossings that pass each prefilter; those skipped before it do not pass."""
    width = max(map(len, result["prefilters"]))
    rows = [f"{each:<{width}}{rate_in_khz(of):>24}" for each, of in result["prefilters"].items()]
    return "\n".join([f"{name}: crossings that pass each prefilter [kHz]", *rows])


def _scans(name: str, result: dict[str, Any]) -> list[str]:
    texts = []
    for scan in result["scans"]:
        rows = [
            f"{name}: {scan['line']}.{scan['cut']}",
            f"{'value':>12}{'line [kHz]':>24}{'for 10 %':>10}"
            f"{'alone [kHz]':>24}{'all lines [kHz]':>24}{'kept [MB/s]':>13}",
        ]
        for point in scan["points"]:
            of_line, *others = (f" {rate_in_khz(point[of]):>23}" for of in ("line", "exclusive", "total"))
            needed = needed_text(point["line"]["events_for_10_percent"], point["line"]["events"])
            cells = f"{of_line}{needed:>10}{''.join(others)}"
            rows.append(f"{point['value']:>12g}{cells}{point['total']['bytes_per_second'] / MEGABYTE:>13.0f}")
        texts.append("\n".join(rows))
    return texts
