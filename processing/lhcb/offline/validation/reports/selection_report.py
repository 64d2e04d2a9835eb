"""Rates and efficiencies of lines as one self-contained HTML file. Needs matplotlib and Jinja2."""

from collections.abc import Sequence
from typing import Any

from hltnode.processing.framework.page_templates import render
from hltnode.processing.lhcb.offline.validation.reports import selection_plots
from hltnode.processing.lhcb.offline.validation.reports.html_report import TEMPLATES, Section, drawn
from hltnode.processing.lhcb.offline.validation.reports.selection_plots import Result

_NOTES = {
    "rates": "Error bars: Wilson score intervals of 68.3 %. Scalers are included; no point: no event.",
    "efficiency": "Error bars: Wilson score intervals of 68.3 %. Scalers are included. On signal: all tracks of a "
    "candidate have at least 70 % of their hits from particles of the signal.",
}


def rates_page(results: Sequence[Result], text: str) -> str:
    """The report of `hltnode rates` with one configuration (name and JSON object), or with two overlaid."""
    sections = [
        Section(
            "Rates of lines",
            [drawn(selection_plots.rate_figure(results), "Rate of each line, and rate of what it alone accepts.")],
        ),
        *_scans(results, selection_plots.rate_scan_figure, "Rate of the line, of what it alone accepts, of all lines."),
        Section(
            "Events that lines have in common",
            [
                drawn(
                    selection_plots.overlap_figure(name, result),
                    "Of the events that the line of a row accepts, those that the line of a column accepts too, in per "
                    "cent; lines without an event are left out.",
                )
                for name, result in results
            ],
        ),
    ]
    return _page("rates", "Rates", results, sections, text)


def efficiency_page(results: Sequence[Result], text: str) -> str:
    """The report of `hltnode efficiency` with one configuration (name and JSON object), or with two overlaid."""
    sections = [
        Section(
            "Efficiencies of lines",
            [
                drawn(selection_plots.efficiency_figure(results), "Efficiency of each line, and trigger on signal."),
                drawn(selection_plots.pt_figure(results), "Any line, and any line on signal; bins of ten decays."),
            ],
        ),
        *_scans(results, selection_plots.efficiency_scan_figure, "Efficiency of the line and of any line."),
    ]
    return _page("efficiency", "Efficiencies", results, sections, text)


def _scans(results: Sequence[Result], figure_of: Any, caption: str) -> list[Section]:
    scans = results[0][1]["scans"]
    return [
        Section(f"Scan of {scan['line']}.{scan['cut']}", [drawn(figure_of(results, number), caption)])
        for number, scan in enumerate(scans)
    ]


def _page(kind: str, title: str, results: Sequence[Result], sections: Sequence[Section], text: str) -> str:
    first = results[0][1]
    names = " against ".join(name for name, _ in results)
    return render(
        "selection.html",
        TEMPLATES,
        title=f"{title}: {names}",
        note=_NOTES[kind],
        inputs=", ".join(first["input"]),
        text=text,
        sections=sections,
    )
