"""Efficiencies of lines as text."""

from collections.abc import Sequence
from typing import Any

from hltnode.processing.selection.studies.tables import needed_text, sequence_text

Result = tuple[str, dict[str, Any]]
"""Name of a trigger configuration, and the JSON object of `hltnode efficiency` with it."""


def efficiency_text(results: Sequence[Result], reconstructible: str) -> str:
    """A table of the lines of one configuration, or of two beside each other, and one of each scan.

    reconstructible: the condition for a product to count as reconstructible, such as "long-reconstructible".
    """
    return "\n\n".join(
        [_lines(results, reconstructible), *(scan for name, result in results for scan in _scans(name, result))]
    )


def efficiency_cell(of: dict[str, Any], name: str = "efficiency") -> str:
    """An efficiency of a JSON object in per cent with its interval, a dash for none."""
    if of[name] is None:
        return "-"
    value, low, high = (100 * of[key] for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.1f} +{high - value:.1f} -{value - low:.1f}"


def _lines(results: Sequence[Result], reconstructible: str) -> str:
    first = results[0][1]
    names = list(dict.fromkeys(name for _, result in results for name in result["lines"]))
    width = max(map(len, (*names, "any line")))
    kept = [first["kept_by_event_cut"][among] for among in ("reconstructible", "all")]
    kept_text = " and ".join("-" if of is None else f"{100 * of:.1f} %" for of in kept)
    rows = [
        f"{first['events']} events{_kinds(first)}; {first['reconstructible']} with a decay whose {first['products']} "
        f"products are all {reconstructible}",
        f"kept by the global event cut: {kept_text} of the reconstructible decays and of all events; others are not "
        "selected",
        "efficiency: the line accepts the event; TOS (trigger on signal): by a candidate of the signal",
        "of reconstructible decays; kept: of those that the event cut keeps; all: of all events; errors: 68.3 %",
        "for 10 %: events of such a sample for which the error is a tenth of the efficiency",
        *(f"{name}: {sequence_text(result)}, TCK {result['tck']}" for name, result in results),
        f"{'line':<{width}}"
        + "".join(
            "".join(f"{title:>{size}}" for title, size in zip(_titles(name), _WIDTHS, strict=True))
            for name, _ in results
        ),
    ]
    rows += [f"{name:<{width}}" + "".join(_cells(result["lines"].get(name)) for _, result in results) for name in names]
    rows.append(f"{'any line':<{width}}" + "".join(_cells(result["any"]) for _, result in results))
    return "\n".join(rows)


def _kinds(of: dict[str, Any]) -> str:
    kinds = ", ".join(of["sample"]["kinds"])
    return f" of {kinds}" if kinds else ""


_WIDTHS = (28, 10, 18, 16, 15, 15, 14)


def _titles(name: str) -> tuple[str, ...]:
    """Titles of the columns of a configuration, each with its own name and unit."""
    shorts = (f"{among}: {what} [%]" for among in ("kept", "all") for what in ("eff.", "TOS"))
    return f"{name}: efficiency [%]", "for 10 %", "TOS [%]", *shorts


def _cells(of: dict[str, Any] | None) -> str:
    if of is None:
        return "".join(f"{'-':>{size}}" for size in _WIDTHS)
    short = [
        "-" if (it := of[among][name]) is None else f"{100 * it:.1f}"
        for among in ("of_kept", "of_all")
        for name in ("efficiency", "trigger_on_signal")
    ]
    needed = of["efficiency_events_for_10_percent"]
    needed_cell = "-" if needed is None else needed_text(needed, of["efficiency"])
    cells = (efficiency_cell(of), needed_cell, efficiency_cell(of, "trigger_on_signal"), *short)
    return "".join(f"{cell:>{size}}" for cell, size in zip(cells, _WIDTHS, strict=True))


def _scans(name: str, result: dict[str, Any]) -> list[str]:
    texts = []
    for scan in result["scans"]:
        rows = [
            f"{name}: {scan['line']}.{scan['cut']}, of reconstructible decays",
            f"{'value':>12}{'line [%]':>18}{'line, TOS [%]':>18}{'any line [%]':>18}{'any, TOS [%]':>18}",
        ]
        for point in scan["points"]:
            cells = [
                efficiency_cell(point[of], which)
                for of in ("line", "any")
                for which in ("efficiency", "trigger_on_signal")
            ]
            rows.append(f"{point['value']:>12g}" + "".join(f"{cell:>18}" for cell in cells))
        texts.append("\n".join(rows))
    return texts
