"""The numbers of a RingChecker as text and as pictures."""

from collections.abc import Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT = 420, 220
_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756")


def _percent(value: float | None) -> str:
    return "      -" if value is None else f"{100.0 * value:6.1f}%"


def text_of(result: dict[str, Any]) -> str:
    """The tables for the terminal."""
    lines = [f"{result['events']} events, {result['without_truth']} without truth", "", "rings   events  all found"]
    lines += [
        f"{n:>5}  {result['events_of_rings'].get(n, 0):>7}  {_percent(found)}" for n, found in result["rings"].items()
    ]
    fakes = result["fakes_per_event"]
    lines += ["", f"fakes per event: {'-' if fakes is None else f'{fakes:.3f}'}"]
    if (spread := result["resolution_mm"]) is not None:
        lines += [f"resolution in mm: x {spread['x']:.2f}, y {spread['y']:.2f}, radius {spread['radius']:.2f}"]
    for title, name in (
        ("two rings: mm between the centres", "of_distance"),
        ("one ring: hits that are not its light", "of_noise"),
    ):
        rows = [row for row in result[name] if row["events"]]
        if rows:
            lines += ["", f"{title:<38} events  all found"]
            lines += [
                f"{row['from']:>16g} to {row['to']:>16g}  {row['events']:>7}  {_percent(row['efficiency'])}"
                for row in rows
            ]
    return "\n".join(lines)


def curve_drawing(title: str, curves: Sequence[Sequence[tuple[float, float]]]) -> str:
    """SVG of efficiencies (0 to 1) against a number, a line for each curve of (number, efficiency)."""
    points = [point for curve in curves for point in curve]
    end = max((x for x, _ in points), default=1.0) or 1.0
    drawn = "".join(
        f'<polyline fill="none" stroke="{_COLOURS[i % len(_COLOURS)]}" stroke-width="2" points="'
        + " ".join(f"{x / end * WIDTH:.1f},{(1.0 - y) * HEIGHT:.1f}" for x, y in curve)
        + '"/>'
        for i, curve in enumerate(curves)
    )
    ticks = "".join(
        f'<text x="-6" y="{(1.0 - y) * HEIGHT + 4:.1f}" text-anchor="end">{y:g}</text>' for y in (0.0, 0.5, 1.0)
    )
    return (
        f'<svg viewBox="-40 -26 {WIDTH + 60} {HEIGHT + 60}" width="{WIDTH + 60}" role="img" '
        f'aria-label="{escape(title)}"><text x="0" y="-8">{escape(title)}</text>'
        f'<rect fill="none" stroke="#8b95a3" width="{WIDTH}" height="{HEIGHT}"/>{ticks}'
        f'<text x="{WIDTH}" y="{HEIGHT + 18}" text-anchor="end">{end:g}</text>{drawn}</svg>'
    )


def page_of(results: Sequence[tuple[str, dict[str, Any]]], text: str) -> str:
    """One or several results as one HTML file; the curves of a number of samples lie over each other."""

    def curves(name: str) -> list[list[tuple[float, float]]]:
        return [
            [((row["from"] + row["to"]) / 2, row["efficiency"]) for row in result[name] if row["events"]]
            for _, result in results
        ]

    numbers = [
        [(float(n), found) for n, found in result["rings"].items() if found is not None] for _, result in results
    ]
    names = "".join(
        f'<li><span style="color:{_COLOURS[i % len(_COLOURS)]}">&#9632;</span> {escape(name)}</li>'
        for i, (name, _) in enumerate(results)
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Rings against truth</title>'
        "<style>body{font-family:sans-serif;margin:2em}svg text{font-size:12px}</style>"
        f"<h1>Rings against truth</h1><ul>{names}</ul>"
        f"{curve_drawing('all found, against the number of true rings', numbers)}"
        f"{curve_drawing('two rings: against mm between the centres', curves('of_distance'))}"
        f"{curve_drawing('one ring: against hits that are not its light', curves('of_noise'))}"
        f"<pre>{escape(text)}</pre></html>"
    )
