"""The result of a tuning as text."""

from typing import Any

from hltnode.processing.selection.event_rate import frequency
from hltnode.processing.selection.studies.tables import with_interval

KHZ = 1e3
PARTS = {"searched": "searched", "held_out": "held out"}


def tuning_text(result: dict[str, Any]) -> str:
    """The tables: rate and efficiencies of both configurations, the tuned cuts, the lines, the curve."""
    return "\n\n".join([_summary(result), _cuts(result), _lines(result), _curve(result)])


def unseen_text(result: dict[str, Any]) -> list[str]:
    """What cross-validation says of unseen events, and of the cap that the search keeps: sentences."""
    of = result["cross_validation"]
    if of is None:
        return ["the cap is not corrected (--no-cross-validation): expect more than it on unseen events"]
    unseen, optimism = of["unseen"], of["optimism"]
    efficiencies = (f"{name} {100 * each['value']:.1f} %" for name, each in unseen["efficiencies"].items())
    kept = frequency(_rounded(of["search_cap_hz"]))
    return [
        f"cross-validation ({of['folds']} parts, {of['rounds']} times): tuned cuts accept "
        f"{optimism['value']:.3f} ± {optimism['error']:.3f} times as much\n"
        f"of events that their search has not seen; so the search kept {kept}",
        f"expected on unseen events: {khz_with_interval(unseen)} kHz; {', '.join(efficiencies)}; "
        f"weighted {100 * unseen['weighted']:.2f} %",
    ]


def sample_warning(result: dict[str, Any]) -> str | None:
    """Why the sample does not tell whether the rate is at the cap, with the number that would; None if it does.

    None too without cross-validation, which is what measures it.
    """
    of = result["cross_validation"]
    if of is None:
        return None
    error, wanted = of["relative_error"], 100 * of["wanted_error"]
    if error is None:
        return "the tuned cuts accept no event of minimum bias in the search, so their rate is unknown"
    if error <= of["wanted_error"]:
        return None
    return (
        f"{of['events']:,} events of minimum bias give the rate relative to the cap to {100 * error:.1f} %; "
        f"{wanted:g} % needs about {int(_rounded(of['events_needed'])):,}"
    )


def _rounded(number: float, digits: int = 3) -> float:
    return float(f"{number:.{digits}g}")


def percent_with_interval(of: dict[str, float]) -> str:
    """An efficiency in per cent with its interval."""
    return with_interval(100 * of["value"], 100 * of["low"], 100 * of["high"])


def khz_with_interval(of: dict[str, float]) -> str:
    """A rate in kHz with its interval."""
    return with_interval(of["rate_hz"] / KHZ, of["low_hz"] / KHZ, of["high_hz"] / KHZ)


def _summary(result: dict[str, Any]) -> str:
    samples = ", ".join(f"{name} {of['events']}" for name, of in result["samples"].items())
    signals = [name for name in result["samples"] if name != "minbias"]
    table = [["", "shipped", "tuned", "shipped", "tuned"], ["", *(PARTS[part] for part in PARTS for _ in (0, 1))]]
    pairs = [result[which][part] for part in PARTS for which in ("shipped", "tuned")]
    table.append(["rate [kHz]", *(khz_with_interval(of) for of in pairs)])
    for name in signals:
        weight = result["samples"][name]["weight"]
        cells = [percent_with_interval(of["efficiencies"][name]) for of in pairs]
        table.append([f"{name}, weight {weight:g} [%]", *cells])
    table.append(["weighted efficiency [%]", *(f"{100 * of['weighted']:.2f}" for of in pairs)])
    return "\n".join(
        [
            f"cap {frequency(result['cap_hz'])}, seed {result['seed']}, {result['evaluations']} "
            f"evaluations; events: {samples}, of which {100 * result['holdout']:g} % are held out",
            *aligned(table),
            *(
                f"tuned rate / shipped rate, {title}: {of['value']:.3f} ± {of['error']:.3f}"
                for part, title in PARTS.items()
                if (of := result["rate_ratio"][part])["value"] is not None
            ),
            *unseen_text(result),
            *(f"warning: {text}" for text in [sample_warning(result)] if text),
        ]
    )


def _cuts(result: dict[str, Any]) -> str:
    rows = [
        [
            f"{of['line']}.{of['cut']}",
            f"{of['before']:g}",
            f"{of['after']:g}",
            f"{of['low']:g}:{of['high']:g}",
            of["unit"],
        ]
        for of in result["cuts"]
        if of["before"] != of["after"]
    ]
    same = len(result["cuts"]) - len(rows)
    return "\n".join(
        [f"tuned cuts; {same} more stay as they are", *aligned([["cut", "shipped", "tuned", "range", "unit"], *rows])]
    )


def _lines(result: dict[str, Any]) -> str:
    signals = [name for name in result["samples"] if name != "minbias"]
    heads = ["line", "shipped [kHz]", "tuned [kHz]", "alone [kHz]", *(f"{name} alone [%]" for name in signals)]
    rows = [
        [
            name,
            *(f"{of[key] / KHZ:.1f}" for key in ("shipped_hz", "rate_hz", "exclusive_hz")),
            *(f"{100 * of['efficiencies'][signal]['exclusive']:.2f}" for signal in signals),
        ]
        for name, of in result["lines"].items()
        if of["shipped_hz"] or of["rate_hz"]
    ]
    rows.sort(key=lambda row: -float(row[2]))
    text = "lines on all events; alone: events that no other line accepts, which the menu without the line loses"
    return "\n".join([text, *aligned([heads, *rows])])


def _curve(result: dict[str, Any]) -> str:
    rows = [
        [
            f"{of['cap_hz'] / KHZ:.0f}",
            khz_with_interval(of["held_out"]),
            f"{100 * of['held_out']['weighted']:.2f}",
            *(f"{100 * each['value']:.1f}" for each in of["held_out"]["efficiencies"].values()),
        ]
        for of in result["curve"]
    ]
    signals = [f"{name} [%]" for name in result["samples"] if name != "minbias"]
    heads = ["cap [kHz]", "rate [kHz]", "weighted [%]", *signals]
    return "\n".join(["rate against efficiency, on the events held out", *aligned([heads, *rows])])


def aligned(table: list[list[str]]) -> list[str]:
    """Rows as lines: the first column on the left, the others on the right."""
    first, *widths = (max(map(len, column)) for column in zip(*table, strict=True))
    return [
        f"{name:<{first}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        for name, *cells in table
    ]
