"""Rates and efficiencies of lines as one self-contained HTML file. Needs matplotlib and Jinja2."""

from collections.abc import Sequence
from typing import Any

from hltnode.processing.framework.page_templates import render
from hltnode.processing.offline.pages.elements import TEMPLATES, Section, drawn
from hltnode.processing.offline.plots import lines
from hltnode.processing.offline.plots.figures import Result

_ERRORS = "Error bars: Wilson score intervals of 68.3 %. Scalers are included"


def rates_page(results: Sequence[Result], text: str) -> str:
    """The report of `hltnode rates` with one configuration (name and JSON object), or with two overlaid."""
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
    return _page(f"{_ERRORS}; no point: no event.", "Rates", results, sections, text)


def efficiency_page(results: Sequence[Result], text: str, *, on_signal: str) -> str:
    """The report of `hltnode efficiency` with one configuration (name and JSON object), or with two overlaid.

    on_signal: the condition for a candidate to count as signal, as the rest of a sentence.
    """
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
    return _page(f"{_ERRORS}. On signal: {on_signal}.", "Efficiencies", results, sections, text)


def _scans(results: Sequence[Result], figure_of: Any, caption: str) -> list[Section]:
    scans = results[0][1]["scans"]
    return [
        Section(f"Scan of {scan['line']}.{scan['cut']}", [drawn(figure_of(results, number), caption)])
        for number, scan in enumerate(scans)
    ]


def _page(note: str, title: str, results: Sequence[Result], sections: Sequence[Section], text: str) -> str:
    first = results[0][1]
    names = " against ".join(name for name, _ in results)
    return render(
        "selection.html",
        TEMPLATES,
        title=f"{title}: {names}",
        note=note,
        inputs=", ".join(first["input"]),
        text=text,
        sections=sections,
    )
