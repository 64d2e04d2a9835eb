"""Verdicts of reports: numbers against limits."""

import pytest

from hltnode.processing.offline.pages.verdicts import Limit, Outcome, Verdict, summary


@pytest.mark.parametrize(
    ("limit", "number", "outcome"),
    [
        (Limit(least=90), (90.0, 89.0, 91.0), Outcome.PASSED),
        (Limit(least=90), (89.0, 88.0, 89.4), Outcome.FAILED),
        (Limit(least=90), (89.0, 88.0, 89.6), Outcome.OPEN),
        (Limit(most=2), (2.5, 2.3, 2.9), Outcome.FAILED),
        (Limit(most=2), (2.5, 2.2, 2.9), Outcome.OPEN),
        (Limit(least=0.85, most=1.15), (1.0, 0.9, 1.1), Outcome.PASSED),
        (Limit(least=0.85, most=1.15), (0.5, 0.4, 0.6), Outcome.FAILED),
        (Limit(least=90), (None, 0.0, 0.0), Outcome.OPEN),
    ],
)
def test_a_failure_is_more_than_two_errors_beyond_the_limit(
    limit: Limit, number: tuple[float | None, float, float], outcome: Outcome
) -> None:
    assert limit.outcome(*number) is outcome


def test_limits_are_shown_with_their_units() -> None:
    texts = [str(limit) for limit in (Limit(least=97, unit="%"), Limit(most=2), Limit(least=0.85, most=1.15))]
    assert texts == ["≥ 97 %", "≤ 2", "≥ 0.85 and ≤ 1.15"]


def test_a_sentence_sums_up_the_verdicts() -> None:
    def of(*outcomes: Outcome) -> tuple[str, str]:
        return summary([Verdict(title="x", outcome=it, value="1", limit="2", entries="3") for it in outcomes])

    failed, passed, undecided = Outcome.FAILED, Outcome.PASSED, Outcome.OPEN
    assert of(passed, failed, undecided, passed) == (
        "1 of 4 checks failed: 2 passed, 1 failed, 1 open.",
        "failed",
    )
    assert of(passed, undecided) == ("No check failed: 1 passed, 1 open.", "passed")
    assert of(undecided) == ("No check could be made: there are no entries.", "open")
