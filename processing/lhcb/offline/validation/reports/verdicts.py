"""Checks of a result of `hltnode validate` against the limits of docs/physics/validation.md."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hltnode.processing.framework.statistics import wilson_interval
from hltnode.processing.offline.pages.verdicts import Limit, Outcome, Verdict

Result = dict[str, Any]
Number = tuple[float | None, float, float, float]
"""Value, ends of its 68.3 % interval, and number of entries."""

_NONE: Number = (None, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Check:
    """A number of a result and its limit. A result without `key` does not have the check."""

    title: str
    key: str
    limit: Limit
    number: Callable[[Result], Number]

    def verdict(self, results: Sequence[Result]) -> Verdict:
        """The verdict on the first result, beside the numbers of the others."""
        value, low, high, entries = self.number(results[0])
        return Verdict(
            title=self.title,
            outcome=self.limit.outcome(value, low, high),
            value=_text((value, low, high, entries), self.limit.unit),
            limit=str(self.limit),
            entries=f"{entries:.0f}",
            others=[_text(self.number(of), self.limit.unit) if of.get(self.key) else "–" for of in results[1:]],
        )


def verdicts(results: Sequence[Result]) -> list[Verdict]:
    """The verdicts on the first result, failures first."""
    order = (Outcome.FAILED, Outcome.OPEN, Outcome.PASSED)
    found = [check.verdict(results) for check in CHECKS if results[0].get(check.key)]
    return sorted(found, key=lambda of: order.index(of.outcome))


def _rate(passed: float, total: float) -> Number:
    """A rate in per cent."""
    if not total:
        return _NONE
    low, high = wilson_interval(passed, total)
    return 100 * passed / total, 100 * float(low), 100 * float(high), total


def _efficiency(stage: str, category: str) -> Callable[[Result], Number]:
    def number(result: Result) -> Number:
        of = result[stage]["categories"].get(category, {"reconstructed": 0, "reconstructible": 0})
        return _rate(of["reconstructed"], of["reconstructible"])

    return number


def _ghosts(stage: str) -> Callable[[Result], Number]:
    def number(result: Result) -> Number:
        of = result["lines"][stage] if "lines" in result else {"ghosts": 0, "tracks": 0}
        return _rate(of["ghosts"], of["tracks"])

    return number


def _clones(stage: str, label: str) -> Callable[[Result], Number]:
    def number(result: Result) -> Number:
        of = result["lines"][stage]["categories"].get(label) if "lines" in result else None
        return _NONE if of is None else _rate(of["clones"], of["reconstructed"] + of["clones"])

    return number


def _width(stage: str, name: str, scale: float = 1.0) -> Callable[[Result], Number]:
    """Half of the central 68.3 %, with its error as interval."""

    def number(result: Result) -> Number:
        of = result["histograms"]["residuals"].get(stage, {}).get(name, {}).get("summary", {})
        if not of.get("entries"):
            return _NONE
        width, error = scale * of["width"], scale * of["width_error"]
        return width, width - error, width + error, of["entries"]

    return number


def _vertices(result: Result) -> Number:
    return _rate(result["pv"]["reconstructed"], result["pv"]["reconstructible"])


def _false_vertices(result: Result) -> Number:
    rate = result["pv"]["false_rate"]
    found = result["pv"]["reconstructed"] if rate is not None else 0
    # The result has the rate only; it belongs to the found and the false vertices.
    total = round(found / (1 - rate)) if rate is not None and rate < 1 else 0
    return _rate(round((rate or 0) * total), total)


def _muons(result: Result) -> Number:
    of = result["muon"]["p6"]
    return _rate(round((of["efficiency"] or 0) * of["muons"]), of["muons"])


def _text(number: Number, unit: str) -> str:
    value, low, high, _ = number
    if value is None:
        return "–"
    return f"{value:.2f} +{high - value:.2f} −{value - low:.2f} {unit}".rstrip()


CHECKS = (
    Check("VELO tracks, 2 < η < 5: found", "velo", Limit(least=97, unit="%"), _efficiency("velo", "velo_eta25")),
    Check("VELO tracks of long particles: found", "velo", Limit(least=98.5, unit="%"), _efficiency("velo", "long")),
    Check("VELO tracks: ghosts", "velo", Limit(most=2, unit="%"), _ghosts("velo")),
    Check("VELO tracks, 2 < η < 5: clones", "velo", Limit(most=3, unit="%"), _clones("velo", "01_velo")),
    Check("long tracks, p > 5 GeV: found", "long", Limit(least=88, unit="%"), _efficiency("long", "long_p5")),
    Check(
        "long tracks from b, p > 5 GeV: found", "long", Limit(least=90, unit="%"),
        _efficiency("long", "long_from_b_p5"),
    ),
    Check("long tracks: ghosts", "long", Limit(most=10, unit="%"), _ghosts("long")),
    Check("long tracks: core of Δp/p", "long", Limit(most=0.7, unit="%"), _width("long", "dp_over_p")),
    Check("long tracks: pull of q/p", "long", Limit(least=0.85, most=1.15), _width("long", "pull_qop")),
    Check("primary vertices: found", "pv", Limit(least=90, unit="%"), _vertices),
    Check("primary vertices: false", "pv", Limit(most=1, unit="%"), _false_vertices),
    Check("primary vertices: pull of z", "pv", Limit(least=0.85, most=1.15), _width("pv", "pull_z")),
    Check("muons, p > 6 GeV: isMuon", "muon", Limit(least=80, unit="%"), _muons),
)  # fmt: skip
"""What the report judges, in the order of the reconstruction."""
