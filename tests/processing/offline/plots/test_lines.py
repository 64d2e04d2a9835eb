"""Figures of lines show the lines with events."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("matplotlib")

from hltnode.processing.offline.plots.lines import efficiency_figure, rate_figure


def rates(**hz: float) -> dict[str, Any]:
    def of(rate: float) -> dict[str, float]:
        intervals = {f"{prefix}{end}_hz": rate for prefix in ("", "exclusive_") for end in ("low", "high")}
        return {"rate_hz": rate, "exclusive_hz": 0.0, **intervals}

    return {"lines": {name: of(rate) for name, rate in hz.items()}, "total": of(sum(hz.values()))}


def efficiencies(**shares: float | None) -> dict[str, Any]:
    def of(share: float | None) -> dict[str, float | None]:
        return {f"{name}{end}": share for name in ("efficiency", "trigger_on_signal") for end in ("", "_low", "_high")}

    return {"lines": {name: of(share) for name, share in shares.items()}, "any": of(0.5)}


def rows(figure: Any) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_a_line_without_an_event_has_no_row() -> None:
    assert rows(rate_figure([("menu", rates(One=10.0, None_=0.0, Two=5.0))])) == ["One", "Two", "all lines"]
    assert rows(efficiency_figure([("menu", efficiencies(One=0.1, Zero=0.0, Unknown=None))])) == ["One", "any line"]


def test_a_line_with_events_in_one_of_two_results_has_a_row() -> None:
    both = [("old", rates(One=0.0, Two=5.0)), ("new", rates(One=10.0, Two=0.0))]
    assert rows(rate_figure(both)) == ["Two", "One", "all lines"]
