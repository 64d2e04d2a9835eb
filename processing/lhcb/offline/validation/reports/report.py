"""The checker's numbers as text, in the layout of Allen's validators."""

import math
import re
from collections.abc import Iterator, Sequence

from hltnode.processing.lhcb.offline.validation.checker.calorimeter import EcalClusterCounts, ElectronCounts
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.clusters import ClusterCounts
from hltnode.processing.lhcb.offline.validation.checker.half_vertices import HalfVertexCounts
from hltnode.processing.lhcb.offline.validation.checker.muon_id import FlaggedCounts, MuonIdCounts
from hltnode.processing.lhcb.offline.validation.checker.stage_counts import StageCounts, VeloCategoryCounts
from hltnode.processing.lhcb.offline.validation.checker.vertices import ISOLATION, MIN_TRACKS, FoundCounts, VertexCounts
from hltnode.processing.lhcb.offline.validation.reports.long_report import (
    curve_lines,
    decay_lines,
    downstream_lines,
    downstream_track_lines,
    loss_lines,
)
from hltnode.processing.offline.checks.counts import ratio
from hltnode.processing.selection.studies.row_choice import EVERYTHING, RowChoice

_ROW = re.compile(r"([^:]+):\s+([-\d(n].*)")
"""A row: its name, and numbers (or nan)."""
_ZEROS = re.compile(r"[^1-9]*")
_CATEGORIES = (
    f"{'particles of the category':<50}: {'found':>9}/{'of':>9} efficiency [%] (mean over events [%]), "
    "clones (rate [%]), hit purity [%], hit efficiency [%]"
)
_TITLES = {Stage.VELO: "velo_validator", Stage.UT: "veloUT_validator", Stage.LONG: "long_validator"}


def format_report(checker: Checker, rows: RowChoice = EVERYTHING) -> str:
    """The chosen rows: one block per stage, then clusters, muon identification, vertices, resolutions, losses, curves,
    downstream particles, and truth that was left out.

    A line of a category: found/total, efficiency (mean over events), clones, purity, hit efficiency; categories without
    a particle have no line. Only categories have an order by rate.
    """
    blocks = [_stage(counts, rows) for counts in checker.stages.values()]
    if checker.clusters.true_hits:
        blocks.append(_clusters(checker.clusters))
    if checker.muon_id is not None:
        blocks.append(_muon_id(checker.muon_id))
    if checker.electrons is not None and checker.ecal_clusters is not None:
        blocks.append(_calorimeter(checker.electrons, checker.ecal_clusters))
    blocks.append(_vertices(checker.vertices))
    if checker.halves is not None:
        blocks.append(_halves(checker.halves))
    if checker.decays is not None:
        blocks.append(decay_lines(checker.decays))
    blocks.append(_resolutions(checker))
    if checker.losses is not None:
        blocks.append(loss_lines(checker.losses))
    blocks.append(curve_lines(checker.curves))
    if checker.downstream is not None:
        blocks.append(downstream_lines(checker.downstream))
    if checker.downstream_tracks is not None:
        blocks.append(downstream_track_lines(checker.downstream_tracks))
    if checker.downstream_decays is not None:
        blocks.append(decay_lines(checker.downstream_decays, "Decays to two downstream tracks:"))
    text = "\n\n\n".join("\n".join(lines) for lines in _chosen(blocks, rows))
    left_out = "\n".join(_truth(checker))
    return "\n\n\n".join(part for part in (text, left_out) if part)


def _chosen(blocks: Sequence[Sequence[str]], rows: RowChoice) -> Iterator[Sequence[str]]:
    """Blocks with the chosen rows; a row begins with its name and a colon, other lines are titles."""
    n_rows = 0
    for lines in blocks:
        kept = []
        found = [_ROW.match(line) for line in lines]
        for line, row in zip(lines, found, strict=True):
            if row is None or (rows.matches(row[1].strip()) and not (rows.nonzero and _ZEROS.fullmatch(row[2]))):
                kept.append(line)
                n_rows += row is not None
        if kept and (not rows.patterns or any(_ROW.match(line) for line in kept)):
            yield kept
    if not n_rows and rows.patterns:
        yield [f"no row matches {' or '.join(rows.patterns)}"]


def _stage(stage: StageCounts, rows: RowChoice) -> list[str]:
    lines = [f"{_TITLES[stage.stage]} validation:", _ghosts("TrackChecker output", stage.ghosts, stage.tracks)]
    if stage.tracks_above:
        lines.append(_ghosts("for P>3GeV,Pt>0.5GeV", stage.ghosts_above, stage.tracks_above))
    found = {of.label: counts for of, counts in stage.categories if of.label is not None and counts.reconstructible}
    names = RowChoice(order=rows.order).names({name: (of.efficiency or 0.0,) for name, of in found.items()})
    if names:
        lines.append(_CATEGORIES)
    for name in names:
        counts = found[name]
        lines.append(
            f"{name:<50}: {counts.reconstructed:9d}/{counts.reconstructible:9d}"
            f" {_percent(counts.efficiency)} ({_percent(counts.efficiency_per_event)}),"
            f" {counts.clones:9d} ({_percent(counts.clone_rate)}) clones,"
            f" pur {_percent(counts.hit_purity)}, hit eff {_percent(counts.hit_efficiency)}"
        )
    if stage.stage is Stage.VELO and names:
        lines.append(f"{'hits of the particles on their tracks':<50}: all, first three, last [%]")
        lines += [
            f"{'hits of ' + name:<50}: {_percent(counts.hit_efficiency)}"
            f" {_percent(ratio(counts.first_hits, counts.tracks))} {_percent(ratio(counts.last_hits, counts.tracks))}"
            for name in names
            if isinstance(counts := found[name], VeloCategoryCounts)
        ]
    return lines


def _ghosts(name: str, ghosts: int, tracks: int) -> str:
    return f"{name:<50}: {ghosts:9d}/{tracks:9d} {_percent(ratio(ghosts, tracks))} ghosts"


def _clusters(counts: ClusterCounts) -> list[str]:
    def line(name: str, part: int, whole: int) -> str:
        return f"{name:<50}: {part:9d}/{whole:9d} {_percent(ratio(part, whole))}"

    lines = [
        "VELO clusters against true hits:",
        line("true hits with a cluster", counts.found, counts.true_hits),
        line("further clusters of true hits (clones)", counts.clones, counts.found + counts.clones),
        line("clusters without true hit (fakes)", counts.fakes, counts.clusters),
    ]
    for axis, residual in counts.residuals.items():
        found = residual.result()["summary"]
        if found["entries"]:
            lines.append(
                f"{f'residual in {axis}':<50}: width {found['width']:.2f}, median {found['median']:.2f} µm, "
                f"{found['entries']:.0f} entries"
            )
    return lines


def _muon_id(counts: MuonIdCounts) -> list[str]:
    def line(name: str, of: FlaggedCounts) -> str:
        return f"{name:<68} {of.flagged:8d}/{of.total:9d} {_percent(ratio(of.flagged, of.total))}"

    return [
        "muon_validator validation:",
        f"{'tracks or particles':<68} {'flagged':>8}/{'of':>9}  rate [%]",
        line("Muon fraction in all MCPs:", counts.particles),
        line("Muon fraction in MCPs to which a track(s) was matched:", counts.matched),
        line("Correctly identified muons with isMuon:", counts.muons),
        line("Correctly identified muons from strange decays with isMuon:", counts.muons_from_strange),
        line("Correctly identified muons from B decays with isMuon:", counts.muons_from_beauty),
        line("Tracks identified as muon with isMuon, but matched to non-muon MCP:", counts.not_muons),
        line("Ghost tracks identified as muon with isMuon:", counts.ghosts),
        line("Muons with P>6GeV identified:", counts.hard_muons),
        line("Others with P>6GeV identified:", counts.hard_not_muons),
        line("Muons with P>6GeV through all stations identified:", counts.crossing_muons),
        line("Others with P>6GeV through all stations identified:", counts.crossing_not_muons),
    ]


def _calorimeter(electrons: ElectronCounts, clusters: EcalClusterCounts) -> list[str]:
    def line(name: str, part: int, whole: int) -> str:
        return f"{name:<50}: {part:9d}/{whole:9d} {_percent(ratio(part, whole))}"

    found = electrons.result()
    lines = [
        "calorimeter validation:",
        line("electrons identified", electrons.found, electrons.electrons),
        line("hadrons identified as electrons", electrons.hadrons_found, electrons.hadrons),
    ]
    network = found["network"]["at_hadron_rate_of_eop"]
    if network["efficiency"] is not None:
        lines.append(
            f"{'the network at this rate of hadrons':<50}: cut {network['cut']:.3f}, "
            f"electrons {_percent(network['efficiency'])}, hadrons {_percent(network['hadron_rate'])}"
        )
    for name, key in (("", "p_over_true"), (", with bremsstrahlung", "p_over_true_with_bremsstrahlung")):
        if found[key] is not None:
            lines.append(f"{'p / true p of electrons' + name:<50}: median {found[key]:.3f}")
    for name, counts in (("photons", clusters.photons), ("electrons", clusters.electrons)):
        lines.append(line(f"{name} with a cluster", counts.found, counts.total))
        of_clusters = counts.result()
        if counts.found:
            lines.append(
                f"{f'clusters of {name}':<50}: energy / true - 1: median {100 * of_clusters['energy_median']:.1f} %, "
                f"width {100 * of_clusters['energy_width']:.1f} %; x and y: width "
                f"{of_clusters['position_width_mm']:.1f} mm"
            )
    lines.append(line("clusters above 400 MeV that nothing explains", clusters.fakes, clusters.hard))
    return lines


def _vertices(pv: VertexCounts | None) -> list[str]:
    if pv is None:
        return ["pv_validator validation:", "no truth of collisions in this sample"]

    def line(name: str, part: int, whole: int) -> str:
        rate = ratio(part, whole)
        return f"{name:<21}: {math.nan if rate is None else rate:6.3f} ({part:6d}/{whole:6d})"

    def found(name: str, of: FoundCounts) -> str:
        return line(name, of.reconstructed, of.reconstructible)

    return [
        "pv_validator validation:",
        "REC and MC vertices matched by dz distance",
        f"MC PV is reconstructible if at least {MIN_TRACKS} tracks are reconstructed",
        f"MC PV is isolated if no other MC PV is nearer than {ISOLATION:.2f} mm",
        "",
        f"{'collisions':<21}:   rate ( found/    of)",
        found("All", pv.all),
        found("Isolated", pv.isolated),
        found("Close", pv.close),
        line("False rate", pv.false, pv.vertices),
        line("Clones", pv.clones, pv.matched),
        line("All, as Allen counts", pv.all.reconstructed + pv.matched_small, pv.all.reconstructible)
        + " (with found MC PVs of fewer tracks)",
    ]


def _halves(halves: HalfVertexCounts) -> list[str]:
    found = halves.result()
    lines = ["Vertices of the VELO halves:", f"{'collisions seen by':<21}:   rate ( found/    of)"]
    for key, name in (("a", "Side A"), ("c", "Side C"), ("both", "Both sides")):
        of = found[key]
        rate = math.nan if of["efficiency"] is None else of["efficiency"]
        lines.append(f"{name:<21}: {rate:6.3f} ({of['reconstructed']:6d}/{of['reconstructible']:6d})")
        if key != "both":
            lines.append(f"{name + ', false rate':<21}: {_percent(of['false_rate'])}")
    for axis, of in found["both"]["distance"].items():
        if of is not None and not axis.startswith("pull"):
            lines.append(
                f"{f'A minus C in {axis[1]}':<21}: median {of['median']:.1f} +- {of['median_error']:.1f} µm, "
                f"width {of['width']:.1f} µm, {found['both']['pairs']} pairs"
            )
    return lines


def _resolutions(checker: Checker) -> list[str]:
    named = {stage.value: found.histograms for stage, found in checker.resolutions.items()}
    if checker.vertices is not None:
        named["pv"] = checker.vertices.residuals
    lines = []
    for stage, histograms in named.items():
        for name, histogram in histograms.items():
            found = histogram.result()["summary"]
            if found["entries"]:
                lines.append(
                    f"{stage + ' ' + name:<21}: width {found['width']:8.2f} +- {found['width_error']:.2f}, "
                    f"median {found['median']:8.2f} {histogram.unit}, {found['entries']:.0f} entries"
                )
    for stage, found in checker.resolutions.items():
        lines += [
            f"{stage.value + ' ' + name:<21}: {line['constant']:.1f} + {line['per_inverse_pt']:.1f} / pT [GeV] µm"
            for name, line in found.ip_lines().items()
        ]
    return ["Resolutions (half of the central 68.3 %):", *lines] if lines else []


def _truth(checker: Checker) -> list[str]:
    faults = checker.faults
    lines = []
    if checker.cut_events:
        lines.append(f"Removed by the global event cut: {checker.cut_events} events, which count nowhere above")
    if faults.lost_ids:
        lines.append(f"LHCbIDs of particles that are not hits: {faults.lost_ids} of {faults.ids}")
    if faults.events:
        lines.append(f"Truth that does not match its event: {faults.events} events left out")
        lines += [f"  {n} events: {fault}" for fault, n in faults.counts.items()]
        lines += [f"  first: {name}" for name in faults.named]
    return lines


def _percent(rate: float | None) -> str:
    return f"{math.nan if rate is None else 100 * rate:6.2f}%"
