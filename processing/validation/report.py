"""The checker's numbers as text, in the shape that physicists know from Allen's validators."""

from hltnode.processing.validation.checker import Checker, ratio

_LABELS = {
    "velo": "Velo",
    "velo_eta25": "Velo, 2 < eta < 5",
    "long": "Long",
    "long_p5": "Long, p > 5 GeV",
    "long_from_b": "Long from B",
    "long_from_b_p5": "Long from B, p > 5 GeV",
    "long_strange": "Long strange",
    "electrons_long": "Long electrons",
}


def format_report(checker: Checker) -> str:
    """One line per category: found/total, efficiency (mean over events), clones, purity, hit efficiency; then PVs."""
    lines = [
        f"VELO tracks, {checker.events} events",
        f"{'ghosts':<26}: {checker.ghosts:>8}/{checker.tracks:>8} {_percent(ratio(checker.ghosts, checker.tracks))}",
    ]
    for name, counts in checker.categories.items():
        lines.append(
            f"{_LABELS[name]:<26}: {counts.reconstructed:>8}/{counts.reconstructible:>8} {_percent(counts.efficiency)}"
            f" ({_percent(counts.efficiency_per_event)}), {counts.clones:>7} ({_percent(counts.clone_rate)}) clones,"
            f" purity {_percent(counts.hit_purity)}, hit efficiency {_percent(counts.hit_efficiency)}"
        )
    pv = checker.vertices
    if pv is None:
        lines.append("Primary vertices: no truth in this sample")
    else:
        efficiency, false_rate = (
            ratio(pv.reconstructed, pv.reconstructible),
            ratio(pv.false, pv.vertices),
        )
        lines += [
            "Primary vertices (reconstructible: at least 4 tracks)",
            f"{'found':<26}: {pv.reconstructed:>8}/{pv.reconstructible:>8} {_percent(efficiency)}",
            f"{'false':<26}: {pv.false:>8}/{pv.vertices:>8} {_percent(false_rate)}",
        ]
    return "\n".join(lines)


def _percent(rate: float | None) -> str:
    return "      -" if rate is None else f"{100 * rate:6.2f}%"
