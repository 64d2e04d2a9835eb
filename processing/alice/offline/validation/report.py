"""The numbers of a TrackChecker as text and as pictures."""

from collections.abc import Sequence
from html import escape
from typing import Any

from hltnode.processing.alice.offline.validation.track_checker import SPECIES

WIDTH, HEIGHT = 420, 220
_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756")
CURVES = (
    ("of_pt", "pT in GeV/c", "tracks of slices"),
    ("of_eta", "pseudorapidity", "tracks of slices"),
    ("of_occupancy", "clusters of the slice", "tracks of slices"),
    ("merged_of_pt", "pT in GeV/c", "merged tracks"),
    ("merged_of_eta", "pseudorapidity", "merged tracks"),
    ("merged_of_occupancy", "mean clusters of a slice", "merged tracks"),
)
"""Key of the result, what is on the axis, and which tracks are counted."""

PULL_TABLES = (
    ("pulls", "all matched tracks"),
    ("pulls_triggered", "tracks of the triggered collision"),
    ("pulls_pure", "tracks of the triggered collision with a match of 90 %"),
    *((f"pulls_{name}", f"{name} of the triggered collision with a match of 90 %") for name in SPECIES),
    ("pulls_of_slices", "all matched tracks of slices"),
)


def _percent(value: float | None) -> str:
    return "      -" if value is None else f"{100.0 * value:6.2f}%"


def _counts(name: str, counts: dict[str, Any]) -> list[str]:
    lines = [f"{name}: {counts['findable']} findable, {counts['tracks']} tracks", "match  efficiency    fakes   clones"]
    return lines + [
        f"{level:>4}%  {_percent(of['efficiency']):>10}  {_percent(of['fakes'])}  {_percent(of['clones'])}"
        for level, of in counts["levels"].items()
    ]


def _v0_lines(v0s: dict[str, Any]) -> list[str]:
    lines = ["", f"V0 candidates: {v0s['candidates']}, without a true decay {_percent(v0s['fakes']).strip()}"]
    lines += ["decay    findable  efficiency  above 1 GeV/c  efficiency  true  mass - true one   width in MeV/c2"]
    for kind in ("K0S", "Lambda"):
        of = v0s[kind]
        mass = (
            "                -         -"
            if of["peak"] is None
            else f"{1e3 * of['peak']:>17.2f} {1e3 * of['width']:>9.2f}"
        )
        lines.append(
            f"{kind:<8} {of['findable']:>8}  {_percent(of['efficiency']):>10}  {of['findable_hard']:>13}  "
            f"{_percent(of['efficiency_hard']):>10}  {of['true_candidates']:>4} {mass}"
        )
    return lines


def _assumed_lines(assumed: dict[str, dict[str, int]]) -> list[str]:
    lines = ["", f"particle of the fit {''.join(f'{name:>9}' for name in SPECIES)}"]
    for name, counts in assumed.items():
        n = sum(counts.values())
        shares = "".join(f"{_percent(count / n if n else None):>9}" for count in counts.values())
        lines.append(f"{n:>9} {name:<9} {shares}")
    return lines


def text_of(result: dict[str, Any]) -> str:
    """The tables for the terminal."""
    lines = [f"{result['events']} events, {result['without_truth']} without truth", ""]
    lines += _counts("tracks of slices", result["slice"])
    if result["merged"] is not None:
        lines += ["", *_counts("merged tracks", result["merged"])]
    if result.get("v0s") is not None:
        lines += _v0_lines(result["v0s"])
    lines += ["", "parameter    resolution"]
    lines += [f"{name:<10} {of['width']:>12.5f}" for name, of in result["resolution"].items() if of is not None]
    for key, title in PULL_TABLES:
        lines += ["", f"pulls, {title}", "parameter     tracks    mean  width below 5  68 % width  outside"]
        lines += [
            f"{name:<10} {pull['tracks']:>9} {pull['mean']:>7.3f} {pull['width']:>14.3f} {pull['width_68']:>11.3f}  "
            f"{_percent(pull['outside'])}"
            for name, pull in result[key].items()
            if pull is not None
        ]
    if result.get("assumed") is not None:
        lines += _assumed_lines(result["assumed"])
    for key, axis, which in CURVES:
        if result.get(key) is None:
            continue
        lines += ["", f"{axis}, {which}", f"{'':<28} findable  efficiency    tracks    fakes   clones"]
        lines += [
            f"{row['from']:>12g} to {row['to']:>12g}  {row['findable']:>8}  {_percent(row['efficiency']):>10}"
            f"  {row['tracks']:>8}  {_percent(row['fakes'])}  {_percent(row['clones'])}"
            for row in result[key]
            if row["findable"] or row["tracks"]
        ]
    return "\n".join(lines)


def curve_drawing(title: str, curves: Sequence[Sequence[float | None]], edges: Sequence[float]) -> str:
    """SVG of efficiencies (0 to 1) in bins of equal width on the page, a line for each curve."""
    step = WIDTH / max(len(edges) - 1, 1)
    drawn = "".join(
        f'<polyline fill="none" stroke="{_COLOURS[i % len(_COLOURS)]}" stroke-width="2" points="'
        + " ".join(
            f"{(place + 0.5) * step:.1f},{(1.0 - value) * HEIGHT:.1f}"
            for place, value in enumerate(curve)
            if value is not None
        )
        + '"/>'
        for i, curve in enumerate(curves)
    )
    ticks = "".join(
        f'<text x="-6" y="{(1.0 - y) * HEIGHT + 4:.1f}" text-anchor="end">{y:g}</text>' for y in (0.0, 0.5, 1.0)
    )
    ticks += "".join(
        f'<text x="{place * step:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{edge:g}</text>'
        for place, edge in enumerate(edges)
    )
    return (
        f'<svg viewBox="-40 -26 {WIDTH + 70} {HEIGHT + 60}" width="{WIDTH + 70}" role="img" '
        f'aria-label="{escape(title)}"><text x="0" y="-8">{escape(title)}</text>'
        f'<rect fill="none" stroke="#8b95a3" width="{WIDTH}" height="{HEIGHT}"/>{ticks}{drawn}</svg>'
    )


def page_of(results: Sequence[tuple[str, dict[str, Any]]], text: str) -> str:
    """One or several results as one HTML file; the curves lie over each other."""
    drawings = "".join(
        curve_drawing(
            f"{what} of {which} against {axis}",
            [[row[what] for row in result[key]] for _, result in results],
            [row["from"] for row in results[0][1][key]] + [results[0][1][key][-1]["to"]],
        )
        for key, axis, which in CURVES
        # A result of an earlier version has fewer curves.
        if all(result.get(key) is not None and "fakes" in result[key][0] for _, result in results)
        for what in ("efficiency", "fakes", "clones")
    )
    names = "".join(
        f'<li><span style="color:{_COLOURS[i % len(_COLOURS)]}">&#9632;</span> {escape(name)}</li>'
        for i, (name, _) in enumerate(results)
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>TPC tracks against truth</title>'
        "<style>body{font-family:sans-serif;margin:2em}svg text{font-size:11px}</style>"
        f"<h1>TPC tracks against truth</h1><ul>{names}</ul>{drawings}<pre>{escape(text)}</pre></html>"
    )
