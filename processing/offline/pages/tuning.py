"""A tuning of cuts as one self-contained HTML file. Needs matplotlib and Jinja2."""

from typing import Any

from hltnode.processing.framework.page_templates import render
from hltnode.processing.offline.pages.elements import Section, drawn
from hltnode.processing.offline.pages.tables import Cell, Row, Table, value_with_errors, with_bars
from hltnode.processing.offline.pages.template_folder import TEMPLATES
from hltnode.processing.offline.plots import lines, tuning
from hltnode.processing.offline.plots.figures import axis_title
from hltnode.processing.selection.event_rate import frequency
from hltnode.processing.selection.tuning.tables import sample_warning, unseen_text

_KHZ = 1e3
_PARTS = {"searched": "events of the search", "held_out": "events held out"}
_NOTE = (
    "Errors: Wilson score intervals of 68.3 %. Efficiency: the part of all events of a signal that any line accepts. "
    "The search has seen the events of the search alone; only the events held out show what the cuts do on others. "
    "Alone: events that no other line accepts, which the menu without the line loses."
)


def tuning_page(name: str, result: dict[str, Any], text: str) -> str:
    """The report of `hltnode tune`. name: the tuned configuration; result: its JSON object; text: its tables."""
    held_out = {which: result[which]["held_out"] for which in ("shipped", "tuned")}
    numbers = [
        (frequency(result["cap_hz"]), "cap"),
        *(
            (f"{of['unseen']['rate_hz'] / _KHZ:.1f} kHz", "all lines, tuned, expected on unseen events")
            for of in [result["cross_validation"]]
            if of is not None
        ),
        *((f"{of['rate_hz'] / _KHZ:.1f} kHz", f"all lines, {which}, held out") for which, of in held_out.items()),
        *((f"{100 * of['weighted']:.2f} %", f"weighted efficiency, {which}") for which, of in held_out.items()),
    ]
    sections = [
        Section(
            "Rate against efficiency",
            [
                drawn(
                    tuning.curve_figure(result),
                    "The best cuts for other caps, on the events held out; crosses: the shipped cuts.",
                )
            ],
        ),
        Section(
            "Events that lines have in common",
            [
                drawn(
                    lines.overlap_figure(f"{name}, tuned", result),
                    "Events of the row's line that the column's line accepts too, in per cent of the events of the "
                    "row's line; lines without an event are left out.",
                )
            ],
        ),
    ]
    return render(
        "selection.html",
        TEMPLATES,
        title=f"Tuned cuts: {name}",
        note=f"{_NOTE} {_sentence(unseen_text(result))}",
        warning=sample_warning(result),
        inputs=f"{', '.join(result['input'])}. TCK {result['tck']}, tuned {result['tuned_tck']}; "
        f"seed {result['seed']}, {result['evaluations']:,} evaluations.",
        numbers=numbers,
        found=[_summary(result), _cuts(result), _lines(result)],
        drawn=sections,
        text=text,
    )


def _sentence(texts: list[str]) -> str:
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in texts)


def _signals(result: dict[str, Any]) -> list[str]:
    return [name for name in result["samples"] if name != "minbias"]


def _summary(result: dict[str, Any]) -> Table:
    pairs = [result[which][part] for part in _PARTS for which in ("shipped", "tuned")]
    heads = ["", *(f"{which}, {part}" for part in _PARTS.values() for which in ("shipped", "tuned"))]
    rate = [value_with_errors(*(of[key] / _KHZ for key in ("rate_hz", "low_hz", "high_hz"))) for of in pairs]
    rows = [Row(["rate [kHz]", *rate])]
    for name in _signals(result):
        found = (of["efficiencies"][name] for of in pairs)
        cells = [value_with_errors(*(100 * of[key] for key in ("value", "low", "high"))) for of in found]
        rows.append(Row([f"{name} [%], weight {result['samples'][name]['weight']:g}", *cells]))
    rows.append(
        Row(["weighted efficiency [%]", *(Cell(f"{100 * of['weighted']:.2f}", of["weighted"]) for of in pairs)])
    )
    return Table("Before and after", heads, rows)


def _cuts(result: dict[str, Any]) -> Table:
    rows = [
        Row(
            [
                axis_title(f"{of['line']}.{of['cut']}", of["unit"]),
                *(Cell(f"{of[key]:g}", of[key]) for key in ("before", "after", "low", "high")),
            ],
            differs=of["before"] != of["after"],
        )
        for of in result["cuts"]
    ]
    return Table("Cuts", ["cut", "shipped", "tuned", "lowest", "highest"], rows)


def _lines(result: dict[str, Any]) -> Table:
    signals = _signals(result)
    heads = ["line", "shipped [kHz]", "tuned [kHz]", "alone [kHz]"]
    heads += [title for name in signals for title in (f"{name} [%]", f"{name} alone [%]")]
    rows = []
    for name, of in result["lines"].items():
        rates = [of[key] / _KHZ for key in ("shipped_hz", "rate_hz", "exclusive_hz")]
        shares = [of["efficiencies"][signal][key] for signal in signals for key in ("tuned", "exclusive")]
        cells = [Cell(f"{value:.1f}", value) for value in rates] + [Cell(f"{100 * v:.2f}", v) for v in shares]
        rows.append(Row([name, *cells], zero=not any((*rates, *shares))))
    return Table("What each line costs and brings, on all events", heads, with_bars(rows, (2, 3)))
