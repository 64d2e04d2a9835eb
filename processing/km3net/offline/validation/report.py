"""The numbers of a MuonChecker as text and as a page."""

from collections.abc import Sequence
from html import escape
from typing import Any


def _percent(row: dict[str, Any], name: str = "efficiency") -> str:
    value = row[name]
    return f"{'-':>14}" if value is None else f"{100.0 * value:6.1f} +- {100.0 * row[f'{name}_error']:4.1f}"


def _rate(row: dict[str, Any]) -> str:
    value, error = row["background_rate_hz"], row["background_rate_hz_error"]
    return f"{'-':>18}" if value is None else f"{value:8.0f} +- {error:6.0f}"


def text_of(result: dict[str, Any]) -> str:
    """The tables for the terminal."""
    borders = result["found_at_borders"]
    lines = [
        f"{result['sub_slices']} sub-slices, {result['live_time_s']:.4f} s; {result['windows']} windows",
        f"muons: {result['muons']}; found in %: {_percent(result)}; by accident: {_percent(result, 'accidental')}",
        f"muons across a border: {borders['muons']}, found {borders['found']}",
        f"background windows in Hz: {_rate(result)}",
        "",
        "hits of the muon    muons   found in %",
    ]
    lines += [
        f"{row['from']:>6} to {row['to'] - 1:>4}  {row['muons']:>9}  {_percent(row)}" for row in result["of_hits"]
    ]
    lines += ["", "candidates with   muons in %       background windows in Hz"]
    lines += [f"{name:<15}  {_percent(row)}   {_rate(row)}" for name, row in result["of_triggers"].items()]
    return "\n".join(lines)


def page_of(results: Sequence[tuple[str, dict[str, Any]]], text: str) -> str:
    """One or several results as one HTML file."""
    bars = "".join(
        f"<h2>{escape(name)}</h2>" + "".join(_bar(row) for row in result["of_hits"] if row["muons"])
        for name, result in results
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Candidates against muons</title>'
        "<style>body{font-family:sans-serif;margin:2em}.bar{background:#4c78a8;height:14px;display:inline-block}"
        ".of{display:inline-block;width:9em}</style><h1>Candidates against muons</h1>"
        f"<p>Fraction of the muons that have a candidate, by their number of hits.</p>{bars}"
        f"<pre>{escape(text)}</pre></html>"
    )


def _bar(row: dict[str, Any]) -> str:
    percent = 100.0 * row["efficiency"]
    return (
        f'<div><span class="of">{row["from"]} to {row["to"] - 1}</span>'
        f'<span class="bar" style="width:{3.0 * percent:.0f}px"></span> {percent:.1f} %</div>'
    )
