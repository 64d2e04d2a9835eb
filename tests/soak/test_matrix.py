"""The matrix of faults."""

from collections import Counter

from tests.soak.decision_log import Decision, DecisionLog
from tests.soak.faults import Kind, Standing
from tests.soak.matrix import HEADERS, make_rows, recovery_seconds, render
from tests.soak.timeline import Span, Timeline
from tests.soak.verdict import Judgement

NODES = ("a", "b")


def decisions(**times: float) -> DecisionLog:
    log = DecisionLog()
    for node, time in times.items():
        log.add(node, Decision(time, 1, 0, "complete", frozenset()))
    return log


def test_a_node_has_recovered_with_its_own_next_decision() -> None:
    span = Span(Kind.KILL_NODE, "a", 10.0, 12.0)
    assert recovery_seconds(span, decisions(a=15.0, b=12.5), NODES) == 3.0


def test_a_feeder_has_recovered_with_the_next_decision_of_any_node() -> None:
    span = Span(Kind.STOP_FEEDER, "feeder1", 10.0, 12.0)
    assert recovery_seconds(span, decisions(a=15.0, b=12.5), NODES) == 0.5


def test_each_kind_has_a_row_with_its_effects_or_the_reason_of_its_omission() -> None:
    timeline = Timeline(
        [
            Span(Kind.KILL_NODE, "a", 10.0, 12.0, in_flight=100),
            Span(Kind.KILL_NODE, "b", 20.0, 21.0, in_flight=20),
            Span(Kind.STOP_NODE, "b", 30.0, 31.0),
        ]
    )
    judgement = Judgement(
        incomplete_explained=Counter({Standing.WIRE: 40}),
        lost_explained=Counter({Kind.CUT_POWER: 7}),
        doubled=Counter({Kind.KILL_NODE: 3}),
        lost=Counter({Standing.NONE: 1}),
        incomplete_unexplained=Counter({Kind.STOP_NODE: 20}),
    )
    skipped = {Kind.DISK_FULL: "skipped: needs root"}
    rows = make_rows(judgement, timeline, decisions(a=12.5, b=40.0), NODES, {Standing.WIRE: 5}, skipped)
    text = render(rows).splitlines()
    cells = {row.row: row.cells() for row in rows}
    assert list(cells) == [*Kind, *Standing]
    assert cells[Kind.KILL_NODE] == ["node killed", "2", "120", "0", "0", "19.0", "3", "0", "0"]
    assert cells[Kind.STOP_NODE] == ["node stopped", "1", "0", "0", "0", "9.0", "0", "0", "20"]
    assert cells[Kind.CUT_POWER] == ["power cut", "0", "0", "0", "7", "", "0", "0", "0"]
    assert cells[Standing.WIRE] == ["fragments damaged", "5", "", "40", "0", "", "0", "0", "0"]
    assert cells[Standing.NONE] == ["no fault near", "", "", "0", "0", "", "0", "1", "0"]
    assert next(line for line in text if line.startswith("disk full")).endswith("(skipped: needs root)")
    assert all(len(row) == len(HEADERS) for row in cells.values())
    assert len({len(line) for line in text if not line.endswith(")")}) == 1
