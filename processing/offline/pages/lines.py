"""Rates and efficiencies of lines as one self-contained HTML file. Needs matplotlib and Jinja2."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from hltnode.processing.framework.page_templates import render
from hltnode.processing.offline.pages.elements import Section, drawn
from hltnode.processing.offline.pages.tables import Cell, Row, Table, value_with_errors, with_bars
from hltnode.processing.offline.pages.template_folder import TEMPLATES
from hltnode.processing.offline.plots import lines
from hltnode.processing.offline.plots.figures import Result, axis_title
from hltnode.processing.selection.event_rate import frequency
from hltnode.processing.selection.studies.tables import needed_text, sequence_text

_ERRORS = "Errors: Wilson score intervals of 68.3 %. Scalers are included"
_KHZ = 1e3
_MEGABYTE = 1e6
_SUMMARY = ("efficiency", "trigger_on_signal")
_AMONG = {"": "reconstructible decays", "of_kept": "kept decays", "of_all": "all events"}
"""Denominators of efficiencies, by their key in the JSON object of a line."""

Cells = Callable[[dict[str, Any] | None], list[Cell]]


def rates_page(results: Sequence[Result], text: str) -> str:
    """The report of `hltnode rates` with one configuration (name and JSON object), or with two overlaid."""
    first = results[0][1]
    sections = [
        Section(
            "Rates of lines",
            [drawn(lines.rate_figure(results), "Rate of each line, and rate of events that no other line accepts.")],
        ),
        *_scans(
            results,
            lines.rate_scan_figure,
            "Rates of the line, of events that only it accepts, and of all lines.",
        ),
        Section(
            "Events that lines have in common",
            [
                drawn(
                    lines.overlap_figure(name, result),
                    "Events of the row's line that the column's line accepts too, in per cent of the events of the "
                    "row's line; lines without an event are left out.",
                )
                for name, result in results
            ],
        ),
    ]
    numbers = [
        (f"{first['events']:,}", "events"),
        (frequency(first["crossing_rate_hz"]), f"rate of {first['event']}s"),
        *((f"{of['total']['rate_hz'] / _KHZ:.1f} kHz", f"all lines, {name}") for name, of in results),
        *((f"{of['total']['bytes_per_second'] / _MEGABYTE:.0f} MB/s", f"kept, {name}") for name, of in results),
    ]
    heads = ["events", "rate [kHz]", "events for 10 %", "alone [kHz]", "kept [MB/s]"]
    bars = ("rate [kHz]", "alone [kHz]", "kept [MB/s]")
    table = _line_table("Rates", results, heads, _rate_cells, "total", _is_never_selected, bars=bars)
    found = [table, *_scan_tables(results, _rate_points)]
    note = (
        f"{_ERRORS}; no point: no event. Events for 10 %: events of such a sample for which the error of the rate is "
        "10 %; at least that many where no event passed. Bars compare the lines of a column."
    )
    return _page(note, "Rates", results, numbers, found, sections, text)


def efficiency_page(results: Sequence[Result], text: str, *, on_signal: str) -> str:
    """The report of `hltnode efficiency` with one configuration (name and JSON object), or with two overlaid.

    on_signal: the condition for a candidate to count as signal, as the rest of a sentence.
    """
    first = results[0][1]
    sections = [
        Section(
            "Efficiencies of lines",
            [
                drawn(lines.efficiency_figure(results), "Efficiency of each line, and trigger on signal."),
                drawn(lines.pt_figure(results), "Any line, and any line on signal; bins of ten decays."),
            ],
        ),
        *_scans(results, lines.efficiency_scan_figure, "Efficiency of the line and of any line."),
    ]
    numbers = [
        (f"{first['events']:,}", "events"),
        (f"{first['reconstructible']:,}", "reconstructible decays"),
        *((_percent(of["any"]["efficiency"]), f"any line, {name}") for name, of in results),
        *((_percent(of["any"]["trigger_on_signal"]), f"any line on signal, {name}") for name, of in results),
    ]
    heads = [f"{what} of {of} [%]" for of in _AMONG.values() for what in ("efficiency", "TOS")]
    table = _line_table("Efficiencies", results, heads, _efficiency_cells, "any", _never_selects_signal)
    found = [table, *_scan_tables(results, _efficiency_points)]
    note = (
        f"{_ERRORS}. Efficiency: the line accepts the event. TOS, trigger on signal: by a candidate of the signal, "
        f"that is, {on_signal}. Kept decays: those that the event cut keeps."
    )
    return _page(note, "Efficiencies", results, numbers, found, sections, text)


def _line_table(
    title: str,
    results: Sequence[Result],
    heads: list[str],
    cells_of: Cells,
    of_all: str,
    is_zero: Callable[[dict[str, Any]], bool],
    bars: Collection[str] = (),
) -> Table:
    """A row for each line; two configurations have their columns beside each other."""
    names = list(dict.fromkeys(name for _, result in results for name in result["lines"]))
    rows = []
    for name in names:
        found = [result["lines"].get(name) for _, result in results]
        cells = [cell for of in found for cell in cells_of(of)]
        rows.append(Row([name, *cells], zero=all(of is None or is_zero(of) for of in found)))
    titles = [head if len(results) == 1 else f"{result}: {head}" for result, _ in results for head in heads]
    barred = [1 + i for i, head in enumerate(heads * len(results)) if head in bars]
    total = Row(["all lines together", *(cell for _, result in results for cell in cells_of(result[of_all]))])
    return Table(title, ["line", *titles], with_bars(rows, barred), total=total)


def _rate_cells(of: dict[str, Any] | None) -> list[Cell]:
    if of is None:
        return [Cell("–")] * 5
    alone = _rate_cell(of, "exclusive_hz", "exclusive_") if "exclusive_hz" in of else Cell("")
    return [_events(of), _rate_cell(of, "rate_hz", ""), _needed_cell(of), alone, _megabytes(of)]


def _events(of: dict[str, Any]) -> Cell:
    return Cell(f"{of['events']:,}", of["events"])


def _needed_cell(of: dict[str, Any]) -> Cell:
    needed = of["events_for_10_percent"]
    return Cell(needed_text(needed, of["events"]), needed)


def _rate_cell(of: dict[str, Any], key: str, prefix: str) -> Cell:
    return value_with_errors(*(of[name] / _KHZ for name in (key, f"{prefix}low_hz", f"{prefix}high_hz")))


def _megabytes(of: dict[str, Any]) -> Cell:
    rate = of["bytes_per_second"] / _MEGABYTE
    return Cell(f"{rate:.0f}", rate)


def _is_never_selected(of: dict[str, Any]) -> bool:
    return not of["rate_hz"]


def _efficiency_cells(of: dict[str, Any] | None) -> list[Cell]:
    if of is None:
        return [Cell("–")] * (len(_AMONG) * len(_SUMMARY))
    return [_efficiency_cell(of[among] if among else of, name) for among in _AMONG for name in _SUMMARY]


def _efficiency_cell(of: dict[str, Any], name: str) -> Cell:
    if of[name] is None:
        return Cell("–")
    return value_with_errors(*(100 * of[key] for key in (name, f"{name}_low", f"{name}_high")))


def _never_selects_signal(of: dict[str, Any]) -> bool:
    return not of["efficiency"] and not of["of_all"]["efficiency"]


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.1f} %"


def _scan_tables(results: Sequence[Result], points_of: Callable[[dict[str, Any]], dict[str, Cell]]) -> list[Table]:
    found = []
    for name, result in results:
        for scan in result["scans"]:
            rows = [Row([f"{point['value']:g}", *points_of(point).values()]) for point in scan["points"]]
            heads = [axis_title(scan["cut"], scan["unit"]), *points_of(scan["points"][0])]
            title = f"Scan of {scan['line']}.{scan['cut']}" + ("" if len(results) == 1 else f", {name}")
            found.append(Table(title, heads, rows))
    return found


def _rate_points(point: dict[str, Any]) -> dict[str, Cell]:
    titles = {"line": "line [kHz]", "exclusive": "alone [kHz]", "total": "all lines [kHz]"}
    cells = {title: _rate_cell(point[of], "rate_hz", "") for of, title in titles.items()}
    cells["events for 10 %, line"] = _needed_cell(point["line"])
    return cells | {"all lines [MB/s]": _megabytes(point["total"])}


def _efficiency_points(point: dict[str, Any]) -> dict[str, Cell]:
    return {
        f"{who}{what} [%]": _efficiency_cell(point[of], name)
        for of, who in (("line", "line"), ("any", "any line"))
        for name, what in (("efficiency", ""), ("trigger_on_signal", ", TOS"))
    }


def _scans(results: Sequence[Result], figure_of: Any, caption: str) -> list[Section]:
    scans = results[0][1]["scans"]
    return [
        Section(f"Plots of the scan of {scan['line']}.{scan['cut']}", [drawn(figure_of(results, number), caption)])
        for number, scan in enumerate(scans)
    ]


def _page(
    note: str,
    title: str,
    results: Sequence[Result],
    numbers: Sequence[tuple[str, str]],
    found: Sequence[Table],
    sections: Sequence[Section],
    text: str,
) -> str:
    first = results[0][1]
    names = " against ".join(name for name, _ in results)
    configurations = "; ".join(f"{name}: {sequence_text(of)}, TCK {of['tck']}" for name, of in results)
    return render(
        "selection.html",
        TEMPLATES,
        title=f"{title}: {names}",
        note=note,
        warning=first.get("sample", {}).get("warning"),
        inputs=f"{', '.join(first['input'])}. {configurations}.",
        numbers=numbers,
        found=found,
        drawn=sections,
        text=text,
    )
