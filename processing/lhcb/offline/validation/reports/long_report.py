"""Text on long tracks besides their efficiencies: losses, curves, decays, downstream particles."""

import math

from hltnode.processing.lhcb.offline.validation.checker.curves import Curves
from hltnode.processing.lhcb.offline.validation.checker.decays import DecayChecks
from hltnode.processing.lhcb.offline.validation.checker.downstream import CATEGORIES as DOWNSTREAM
from hltnode.processing.lhcb.offline.validation.checker.downstream import DownstreamCounts, HitCounts
from hltnode.processing.lhcb.offline.validation.checker.downstream_tracks import CATEGORIES as DOWNSTREAM_TRACKS
from hltnode.processing.lhcb.offline.validation.checker.downstream_tracks import DownstreamTrackCounts
from hltnode.processing.lhcb.offline.validation.checker.losses import REASONS, LossCounts
from hltnode.processing.lhcb.offline.validation.reference.comparison import QUANTITIES, ReferenceComparison
from hltnode.processing.offline.checks.counts import ratio

# Of each curve this number of points is printed.
_POINTS = 6


def loss_lines(losses: LossCounts) -> list[str]:
    """A table: categories in columns, reasons in rows."""
    names = [name for name, counts in losses.counts.items() if counts["reconstructible"]]
    if not names:
        return []
    rows = {"reconstructible": "reconstructible", "found": "found", **REASONS}
    lines = ["Where long particles are lost (the first reason that holds):"]
    lines.append(f"{'':<50}: " + " ".join(f"{name:>18}" for name in names))
    for reason, title in rows.items():
        cells = []
        for name in names:
            n, total = losses.counts[name][reason], losses.counts[name]["reconstructible"]
            cells.append(f"{n:9d} ({100 * n / total:6.2f}%)")
        lines.append(f"{title:<50}: " + " ".join(cells))
    return lines


def curve_lines(curves: Curves) -> list[str]:
    """A few points of each curve; the last one is the operating point."""
    lines = []
    for (stage, _), curve in curves:
        result = curve.result()
        lines.append(f"{stage.value}, {result['title']}: ghosts, {', '.join(result['categories'])}")
        n = len(result["limit"])
        points = sorted({round(i * (n - 1) / (min(_POINTS, n) - 1)) for i in range(min(_POINTS, n))})
        for i in points:
            efficiencies = [of["efficiency"][i] for of in result["categories"].values()]
            lines.append(
                f"  {result['limit'][i]:8.2f}: {_percent(result['ghost_rate'][i])}, "
                + " ".join(_percent(efficiency) for efficiency in efficiencies)
            )
    return ["Efficiency against ghosts, the last line of each is the operating point:", *lines] if lines else []


def decay_lines(decays: DecayChecks, title: str = "Decays to two long tracks:") -> list[str]:
    """Found decays, resolutions, and masses, below the title."""
    lines = []
    for name, counts in decays.counts.items():
        if not counts.reconstructible:
            continue
        lines.append(
            f"{name:<8}: {counts.found:6d}/{counts.reconstructible:6d} "
            f"{_percent(ratio(counts.found, counts.reconstructible))}"
            f" ({_percent(ratio(counts.found, counts.with_tracks))} of those with both tracks),"
            f" candidates {counts.candidates}, {counts.with_ghost} with a ghost"
        )
        widths = {of: residual.result()["summary"] for of, residual in counts.residuals.items()}
        if all(width["entries"] for width in widths.values()):
            lines.append(
                f"{'':<8}  width of "
                + ", ".join(
                    f"{name} {width['width']:.3f}+-{width['width_error']:.3f}" for name, width in widths.items()
                )
                + " (mm)"
            )
        peak = counts.peak()
        if peak is not None:
            lines.append(
                f"{'':<8}  mass {peak.mass:.2f}+-{peak.mass_error:.2f} MeV (true {counts.kind.mass:.2f}), core width "
                f"{peak.width:.2f}+-{peak.width_error:.2f} MeV, {peak.signal:.0f} over {peak.background:.0f}"
            )
    return [title, *lines] if lines else []


def downstream_lines(counts: DownstreamCounts) -> list[str]:
    """Particles and hits by category."""

    def unused(of: HitCounts) -> str:
        return f"{of.unused:8d}/{of.hits:8d} {_percent(ratio(of.unused, of.hits))}"

    lines = [
        f"{DOWNSTREAM[name][0]:<28}: {of.particles:7d} ({of.particles / max(counts.events, 1):6.2f} an event), "
        f"UT {unused(of.ut)}, SciFi {unused(of.scifi)}"
        for name, of in counts.categories.items()
        if of.particles
    ]
    title = "Downstream particles (UT and SciFi, no VELO hit), and their hits that no long track uses:"
    return [title, *lines] if lines else []


def downstream_track_lines(counts: DownstreamTrackCounts) -> list[str]:
    """Efficiencies by category, ghosts and momentum of downstream tracks."""
    result = counts.result()
    lines = [
        f"{DOWNSTREAM_TRACKS[name][0]:<29}: {of['found']:7d}/{of['particles']:7d} {_percent(of['efficiency'])}"
        for name, of in result["efficiency"].items()
        if of["particles"]
    ]
    momentum = result["momentum"]
    lines.append(f"{'ghosts':<29}: {result['ghosts']:7d}/{result['tracks']:7d} {_percent(result['ghost_rate'])}")
    if momentum["tracks"]:
        lines.append(f"{'68 % of the size of dp/p':<29}: {_percent(momentum['size_68'])}")
    return ["Downstream tracks (UT and SciFi):", *lines]


def reference_lines(comparison: ReferenceComparison) -> list[str]:
    """Found and total of each quantity of the dumps, median and largest differences."""
    lines = [
        f"Against {comparison.dump.folder.name}: {comparison.events} events, "
        f"{comparison.events_without_dump} without dump"
    ]
    for name, of in comparison.result()["quantities"].items():
        differences = "; ".join(
            f"{quantity} {difference['median']:.4g}, at most {difference['largest']:.4g} {difference['unit']}".rstrip()
            for quantity, difference in of["differences"].items()
        )
        lines.append(
            f"{QUANTITIES[name]:<58}: {of['found']:7d}/{of['total']:7d} {_percent(of['rate'])}, ours {of['ours']:7d}"
            + (f"; differences, median: {differences}" if differences else "")
        )
    return lines


def _percent(rate: float | None) -> str:
    return f"{math.nan if rate is None else 100 * rate:6.2f}%"
