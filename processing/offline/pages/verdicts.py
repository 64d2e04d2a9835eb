"""Verdicts of a report: numbers against limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, unique

ERRORS = 2.0
"""With one error, every third check of a number at its limit would fail by chance."""


@unique
class Outcome(StrEnum):
    """Outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"
    """The number is beyond the limit by a few errors only, or there is no number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The least or the most that a number may be; both in the unit `unit`."""

    least: float | None = None
    most: float | None = None
    unit: str = ""

    def __str__(self) -> str:
        bounds = {"≥": self.least, "≤": self.most}
        text = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds.items() if bound is not None)
        return f"{text} {self.unit}".rstrip()

    def outcome(self, value: float | None, low: float, high: float) -> Outcome:
        """The outcome for a number and its interval: a failure is more than ERRORS errors beyond the limit."""
        if value is None:
            return Outcome.OPEN
        least = float("-inf") if self.least is None else self.least
        most = float("inf") if self.most is None else self.most
        if least <= value <= most:
            return Outcome.PASSED
        is_far = value + ERRORS * (high - value) < least or value - ERRORS * (value - low) > most
        return Outcome.FAILED if is_far else Outcome.OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A check in a report. value: with its interval; entries: their number; others: the number in other results."""

    title: str
    outcome: Outcome
    value: str
    limit: str
    entries: str
    others: Sequence[str] = ()

    @property
    def kind(self) -> str:
        """The class of its style."""
        return str(self.outcome)


def summary(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    """A sentence on all verdicts, and the class of its style."""
    counts = {outcome: sum(of.outcome is outcome for of in verdicts) for outcome in Outcome}
    text = ", ".join(f"{n} {outcome}" for outcome, n in counts.items() if n)
    if counts[Outcome.FAILED]:
        return f"{counts[Outcome.FAILED]} of {len(verdicts)} checks failed: {text}.", str(Outcome.FAILED)
    if counts[Outcome.PASSED]:
        return f"No check failed: {text}.", str(Outcome.PASSED)
    return "No check could be made: there are no entries.", str(Outcome.OPEN)
