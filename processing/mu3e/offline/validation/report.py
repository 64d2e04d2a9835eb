"""The numbers of a DecayChecker as text and as a page."""

from collections.abc import Sequence
from html import escape
from typing import Any


def _percent(result: dict[str, Any], name: str) -> str:
    value = result[name]
    return "-" if value is None else f"{100.0 * value:.2f} +- {100.0 * result[f'{name}_error']:.2f} %"


def _measured(result: dict[str, Any], name: str, unit: str) -> str:
    value = result[name]
    if value is None:
        return "-"
    return f"{value:.3g} +- {result[f'{name}_error']:.2g} {unit}, bias {result[f'{name}_bias']:+.3g} {unit}"


def _reduction(result: dict[str, Any]) -> str:
    if result["rate_reduction"] is not None:
        return f"{result['rate_reduction']:.0f} +- {result['rate_reduction_error']:.0f}"
    limit = result["rate_reduction_limit"]
    return "-" if limit is None else f"above {limit:.0f} (90 % confidence)"


def text_of(result: dict[str, Any]) -> str:
    """The tables for the terminal."""
    decays = ", ".join(f"{n} {kind}" for kind, n in result["decays"].items() if n)
    lines = [
        f"{result['sub_slices']} sub-slices, {1e6 * result['live_time_s']:.1f} us; decays: {decays or 'none'}",
        f"signal decays with three tracks in all layers: {result['accepted']}",
        f"  with a vertex of their tracks: {_percent(result, 'signal_efficiency')}",
        f"  in a window: {_percent(result, 'kept')}; by accident: {_percent(result, 'accidental')}",
        f"windows: {result['windows']}, without signal {result['background_windows']}; "
        f"time over the time that they keep: {_reduction(result)}",
        f"vertex, each coordinate ({result['vertices']} of signal): {_measured(result, 'vertex', 'um')}",
        f"particles in all layers that have a track: {_percent(result, 'track_efficiency')}",
        f"ghosts among {result['tracks']} tracks: {_percent(result, 'ghost_fraction')}; "
        f"tracks of particles on their way back: {_percent(result, 'backwards')}",
        "",
        f"{'tracks with':<12}{'tracks':>8}   momentum",
    ]
    lines += [
        f"{name:<12}{of['tracks']:>8}   {_measured(of, 'resolution', 'MeV/c')}"
        for name, of in result["momentum_by_hits"].items()
    ]
    lines += [
        f"{'recurling, of signal':<20}   {_measured(result, 'momentum', 'MeV/c')}",
        f"recurling hits that are from the particle of their track: {_percent(result, 'right_recurls')}",
    ]
    return "\n".join(lines)


def page_of(results: Sequence[tuple[str, dict[str, Any]]], text: str) -> str:
    """One or several results as one HTML file."""
    bars = "".join(f"<h2>{escape(name)}</h2>" + _bars(result) for name, result in results)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Tracks and vertices against decays</title>'
        "<style>body{font-family:sans-serif;margin:2em}.bar{background:#4c78a8;height:14px;display:inline-block}"
        ".of{display:inline-block;width:14em}</style><h1>Tracks and vertices against decays</h1>"
        f"<p>Fractions of signal decays and of particles with hits in all layers.</p>{bars}"
        f"<pre>{escape(text)}</pre></html>"
    )


def _bars(result: dict[str, Any]) -> str:
    rows = (
        ("decays with a vertex", "signal_efficiency"),
        ("decays in a window", "kept"),
        ("particles with a track", "track_efficiency"),
    )
    return "".join(
        f'<div><span class="of">{text}</span><span class="bar" style="width:{300.0 * result[name]:.0f}px"></span> '
        f"{100.0 * result[name]:.1f} %</div>"
        for text, name in rows
        if result[name] is not None
    )
