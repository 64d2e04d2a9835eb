"""The checker's result as one self-contained HTML file: numbers as text, plots as embedded SVG. Needs matplotlib."""

from collections.abc import Sequence
from html import escape
from typing import Any

from matplotlib.figure import Figure

from hltnode.processing.lhcb.validation.checker.binning import wilson_interval
from hltnode.processing.lhcb.validation.reports import plots
from hltnode.processing.lhcb.validation.reports.plots import Result

_STAGES = {"velo": "VELO tracks", "ut": "VELO-UT tracks", "long": "Long tracks"}
_STYLE = """body{font-family:system-ui,sans-serif;max-width:1250px;margin:2em auto;padding:0 1em;color:#222}
pre{background:#f6f6f6;padding:1em;overflow-x:auto;font-size:12px} img{max-width:100%;display:block;margin:.5em 0}
figure{margin:1.5em 0} figcaption{color:#444;font-size:14px;max-width:75em} h2{border-bottom:1px solid #ccc}
table{border-collapse:collapse;font-size:14px} td,th{padding:.25em .8em;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left} tr.differs td{background:#fde9e0} .note{color:#444;font-size:14px}"""


def page(title: str, body: Sequence[str]) -> str:
    """A complete HTML page."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def figure_element(figure: Figure, caption: str) -> str:
    """A figure with its caption."""
    image = plots.svg_image(figure, escape(caption))
    return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"


def checker_page(results: Sequence[tuple[str, dict[str, Any]]], text: str) -> str:
    """The report of one result of the checker (name and JSON object), or of two overlaid; text: that of the first."""
    drawn: list[Result] = [(name, result["histograms"]) for name, result in results]
    histograms = drawn[0][1]
    body = [
        "<p class=note>Error bars: Wilson score intervals of 68.3&nbsp;% for rates, standard errors for means, width / "
        "√(2n) for widths (half of the central 68.3&nbsp;%). Bins of fewer than ten entries are not drawn.</p>",
        f"<h2>Numbers: {escape(results[0][0])}, {histograms['events']} events</h2>",
        f"<pre>{escape(text)}</pre>",
    ]
    if len(results) > 1:
        body += ["<h2>Beside each other</h2>", *_table(results)]
    for stage, title in _STAGES.items():
        if stage in histograms["stages"] and histograms["stages"][stage]["categories"]:
            body += [f"<h2>{title}</h2>", *_stage_figures(drawn, stage)]
    if "pv" in histograms["residuals"]:
        body += ["<h2>Primary vertices</h2>", *_vertex_figures(drawn)]
    return page("Checker: " + " against ".join(name for name, _ in results), body)


def _table(results: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """Efficiencies and ghost rates of the results, with Wilson intervals."""
    names = "".join(f"<th>{escape(name)}</th>" for name, _ in results)
    rows = [f"<table><tr><th>rate, %</th>{names}</tr>"]
    for stage, title in _STAGES.items():
        if not all(result.get(stage) for _, result in results):
            continue
        of_results = [result[stage] for _, result in results]
        rows.append(_row(f"{title}, ghosts", [_percent(it["ghost_rate"]) for it in of_results]))
        for category in of_results[0]["categories"]:
            found = [it["categories"].get(category) for it in of_results]
            rows.append(_row(f"{title}, {category}", [_efficiency(counts) for counts in found]))
    if all(result.get("pv") for _, result in results):
        rows.append(_row("primary vertices", [_efficiency(result["pv"]) for _, result in results]))
        rows.append(_row("false primary vertices", [_percent(result["pv"]["false_rate"]) for _, result in results]))
    return [*rows, "</table>"]


def _row(name: str, cells: Sequence[str]) -> str:
    return f"<tr><td>{escape(name)}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.2f}"


def _efficiency(counts: dict[str, Any] | None) -> str:
    if counts is None or not counts["reconstructible"]:
        return "–"
    low, high = wilson_interval(counts["reconstructed"], counts["reconstructible"])
    return f"{_percent(counts['efficiency'])} ({100 * float(low):.2f} to {100 * float(high):.2f})"


def _stage_figures(results: Sequence[Result], stage: str) -> list[str]:
    found = [
        figure_element(plots.efficiency_figure(results, stage), "Efficiency: particles found / particles to find."),
        figure_element(plots.ghost_figure(results, stage), "Ghost rate: tracks that match no particle / all tracks."),
        figure_element(
            plots.clone_figure(results, stage), "Clone rate: further tracks of a particle / tracks that match one."
        ),
        figure_element(
            plots.purity_figure(results, stage), "Hit purity: hits of the matched particle / hits of the track."
        ),
        figure_element(
            plots.hit_efficiency_figure(results, stage),
            "Hit efficiency: hits of the particle on its track / all its hits, in the detector under test.",
        ),
    ]
    residuals = results[0][1]["residuals"].get(stage, {})
    if "ip_x" in residuals:
        found += [
            figure_element(
                plots.width_figure(results, stage, ["ip_x", "ip_y", "pull_ip_x"]),
                "Impact parameter resolution: distance of the track from the true origin of its particle, at the z of "
                "that origin; long, prompt, no electrons, 2 < η < 5.",
            ),
            figure_element(
                plots.residual_figure(results, stage, ["ip_x", "ip_y", "pull_ip_x", "pull_ip_y"]),
                "Impact parameter residuals and pulls; the outermost bins hold what lies beyond.",
            ),
        ]
    if "dp_over_p" in residuals:
        names = [name for name in ("dp_over_p", "pull_qop") if name in residuals]
        found += [
            figure_element(plots.width_figure(results, stage, names), "Momentum resolution and pull."),
            figure_element(plots.residual_figure(results, stage, names), "Momentum residuals and pull."),
        ]
    return found


def _vertex_figures(results: Sequence[Result]) -> list[str]:
    residuals, pulls = ["dx", "dy", "dz"], ["pull_x", "pull_y", "pull_z"]
    return [
        figure_element(
            plots.vertex_efficiency_figure(results),
            "Efficiency: collisions of at least four tracks with a vertex, isolated (no other within 10 mm) or close.",
        ),
        figure_element(plots.width_figure(results, "pv", residuals), "Resolution against the tracks of the collision."),
        figure_element(plots.residual_figure(results, "pv", residuals + pulls), "Residuals and pulls."),
        figure_element(plots.width_figure(results, "pv", pulls), "Width of the pulls: 1 if errors are right."),
    ]
