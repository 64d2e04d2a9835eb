"""The checker's result as one self-contained HTML file: verdicts, tables, plots as embedded SVG.

Needs matplotlib and Jinja2.
"""

from collections.abc import Sequence
from typing import Any

from hltnode.processing.framework.page_templates import render
from hltnode.processing.framework.statistics import wilson_interval
from hltnode.processing.lhcb.offline.validation.checker.vertices import PV_BINNINGS
from hltnode.processing.lhcb.offline.validation.reports.tables import STAGES, result_tables, stage_tables
from hltnode.processing.lhcb.offline.validation.reports.track_figures import TRACK_FIGURES
from hltnode.processing.lhcb.offline.validation.reports.verdicts import verdicts
from hltnode.processing.offline.pages.elements import Drawn, Section, drawn
from hltnode.processing.offline.pages.tables import Row, percent
from hltnode.processing.offline.pages.template_folder import TEMPLATES
from hltnode.processing.offline.pages.verdicts import summary
from hltnode.processing.offline.plots.curves import curves_figure
from hltnode.processing.offline.plots.figures import Result
from hltnode.processing.offline.plots.masses import mass_figure
from hltnode.processing.offline.plots.residuals import residual_figure, width_figure
from hltnode.processing.offline.plots.vertices import vertex_efficiency_figure

_LIMITS = "docs/physics/validation.md explains the limits."


def checker_page(results: Sequence[tuple[str, dict[str, Any]]], text: str) -> str:
    """The report of one result of the checker (name and JSON object), or of two overlaid; text: that of the first."""
    to_draw: list[Result] = [(name, result["histograms"]) for name, result in results]
    histograms = to_draw[0][1]
    sections = [
        Section(title, [*_stage_figures(to_draw, stage), *_curves(results, stage)])
        for stage, title in STAGES.items()
        if stage in histograms["stages"] and histograms["stages"][stage]["categories"]
    ]
    if "pv" in histograms["residuals"]:
        sections.append(Section("Primary vertices", _vertex_figures(to_draw)))
    if (vertices := results[0][1].get("vertices")) and any(sum(of["true"]) for of in vertices["masses"].values()):
        sections.append(Section("Decays to two long tracks", [_masses(vertices["masses"])]))
    downstream = results[0][1].get("downstream", {}).get("masses", {})
    if any(sum(of["true"]) for of in downstream.values()):
        sections.append(Section("Decays to two downstream tracks", [_masses(downstream, "downstream")]))
    names = [name for name, _ in results]
    judged = verdicts([result for _, result in results])
    verdict, kind = summary(judged)
    return render(
        "checker.html",
        TEMPLATES,
        title="Validation: " + " against ".join(names),
        names=names,
        events=histograms["events"],
        verdict=verdict,
        verdict_kind=kind,
        verdict_heads=["check", "verdict", "value", "limit", "entries", *names[1:]],
        verdict_note=_LIMITS,
        verdicts=judged,
        text=text,
        rates=_rates([result for _, result in results]) if len(results) > 1 else [],
        drawn=sections,
        found=[*stage_tables(results[0][1]), *result_tables(results[0][1])],
    )


def _rates(results: Sequence[dict[str, Any]]) -> list[Row]:
    """Efficiencies and ghost rates of the results, with Wilson intervals."""
    rows: list[Row] = []
    for stage, title in STAGES.items():
        if not all(result.get(stage) for result in results):
            continue
        of_results = [result[stage] for result in results]
        rows.append(Row([f"{title}, ghosts", *(percent(it["ghost_rate"]) for it in of_results)]))
        for category in of_results[0]["categories"]:
            found = [it["categories"].get(category) for it in of_results]
            cells = [_efficiency(of) for of in found]
            rows.append(Row([f"{title}, {category}", *cells], zero=all(cell == "–" for cell in cells)))
    if all(result.get("pv") for result in results):
        vertices = [result["pv"] for result in results]
        rows.append(Row(["primary vertices", *map(_efficiency, vertices)]))
        rows.append(Row(["false primary vertices", *(percent(it["false_rate"]) for it in vertices)]))
    return rows


def _efficiency(counts: dict[str, Any] | None) -> str:
    if counts is None or not counts["reconstructible"]:
        return "–"
    low, high = wilson_interval(counts["reconstructed"], counts["reconstructible"])
    return f"{percent(counts['efficiency'])} ({100 * float(low):.2f} to {100 * float(high):.2f})"


def _stage_figures(results: Sequence[Result], stage: str) -> list[Drawn]:
    found = [
        drawn(TRACK_FIGURES.efficiency_figure(results, stage), "Efficiency: particles found / particles to find."),
        drawn(TRACK_FIGURES.ghost_figure(results, stage), "Ghost rate: tracks that match no particle / all tracks."),
        drawn(
            TRACK_FIGURES.clone_figure(results, stage),
            "Clone rate: further tracks of a particle / tracks that match one.",
        ),
        drawn(
            TRACK_FIGURES.purity_figure(results, stage), "Hit purity: hits of the matched particle / hits of the track."
        ),
        drawn(
            TRACK_FIGURES.hit_efficiency_figure(results, stage),
            "Hit efficiency: hits of the particle on its track / all its hits, in the detector under test.",
        ),
    ]
    residuals = results[0][1]["residuals"].get(stage, {})
    if "ip_x" in residuals:
        found += [
            drawn(
                width_figure(results, stage, ["ip_x", "ip_y", "pull_ip_x"]),
                "Impact parameter resolution: distance of the track from the true origin of its particle, at the z of "
                "that origin; long, prompt, no electrons, 2 < η < 5.",
            ),
            drawn(
                residual_figure(results, stage, ["ip_x", "ip_y", "pull_ip_x", "pull_ip_y"]),
                "Impact parameter residuals and pulls; the outermost bins hold all values beyond.",
            ),
        ]
    if "dp_over_p" in residuals:
        names = [name for name in ("dp_over_p", "pull_qop") if name in residuals]
        found += [
            drawn(width_figure(results, stage, names), "Momentum resolution and pull."),
            drawn(residual_figure(results, stage, names), "Momentum residuals and pull."),
        ]
    return found


def _curves(results: Sequence[tuple[str, dict[str, Any]]], stage: str) -> list[Drawn]:
    if stage not in results[0][1].get("curves", {}):
        return []
    return [
        drawn(
            curves_figure(results, stage),
            "Efficiency against ghost rate as the cut is tightened; the large points are the operating point.",
        )
    ]


def _masses(masses: dict[str, Any], tracks: str = "long") -> Drawn:
    return drawn(
        mass_figure(masses),
        f"Masses of vertices of two {tracks} tracks of opposite charge, and of those that are the decay; the line is a "
        "Gaussian core over a straight background, the dotted line the true mass."
        + (" The width of the φ includes its natural width (4.2 MeV)." if "phi" in masses else ""),
    )


def _vertex_figures(results: Sequence[Result]) -> list[Drawn]:
    residuals, pulls = ["dx", "dy", "dz"], ["pull_x", "pull_y", "pull_z"]
    return [
        drawn(
            vertex_efficiency_figure(results, PV_BINNINGS),
            "Efficiency: collisions of at least four tracks with a vertex, isolated (no other within 10 mm) or close.",
        ),
        drawn(width_figure(results, "pv", residuals), "Resolution against the tracks of the collision."),
        drawn(residual_figure(results, "pv", residuals + pulls), "Residuals and pulls."),
        drawn(width_figure(results, "pv", pulls), "Width of the pulls: 1 if errors are correct."),
    ]
