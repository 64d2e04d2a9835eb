"""The runs of a replay one after the other: the end of a run before the next, and processes that end in between."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hltnode.client.feeder import Feeder
from hltnode.client.hello_refusals import PATIENCE_NS, HelloRefusals
from hltnode.client.sockets import FeederKeys
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.assignment_memory import AssignmentMemory
from hltnode.daemon.replay.finished_runs import FinishedRuns
from hltnode.daemon.replay.follower import FollowedList
from hltnode.daemon.replay.nodes import NodeGroup, Nodes
from hltnode.daemon.replay.pacing import Pace
from hltnode.daemon.replay.replaying import Replay, ReplayState
from hltnode.daemon.replay.run_sequence import ReplayRuns, RunOutcome, RunResult, join_outcomes, sum_of_reports
from hltnode.daemon.replay.single_node import FeedReport
from hltnode.daemon.replay.site import Site, make_identities
from hltnode.daemon.replay.supervisor import Supervisor
from hltnode.protocol.transport.assignments import Follow
from hltnode.protocol.transport.refusals import HelloRefusal
from tests.client.test_feeder import Bench
from tests.daemon.fakes import eventually, make_config, running_node
from tests.daemon.replay.test_run_split import record, streams_of

RUNS = (5, 6)
IN_RUN = 24


class KilledError(RuntimeError):
    """In place of a kill of the process."""


def replays_of(node: Node, folder: Path) -> list[Replay]:
    path = folder / "x.mdf"
    if not path.exists():
        path.write_bytes(b"".join(record(run, n) for n in range(IN_RUN) for run in RUNS))
    site = Site.of([node.receiver.endpoint], [node.control.endpoint], None, None, None, FeederKeys(None, False), RUNS)
    return [
        Replay(
            stream,
            make_identities(stream, "feeder", 1, None, "", follows_run=number > 0),
            site,
            Pace.GREATEST,
            60.0,
            None,
            1,
            ends_by_signal=False,
        )
        for number, stream in enumerate(streams_of(path, events_per_mep=8))
    ]


class TwoRuns:
    """A replay of two runs, its lines and its states."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.lines: list[str] = []
        self.states: list[ReplayState] = []
        self.record = folder / "runs"
        replays = replays_of(node, folder)
        self.runs = ReplayRuns(replays, self.states.append, self.lines.append, FinishedRuns(self.record))

    async def results(self) -> list[tuple[int, RunResult, bool]]:
        outcomes, _ = await self.runs.run()
        return [(outcome.run, outcome.result, outcome.complete) for outcome in outcomes]


def summaries(folder: Path) -> list[tuple[int, str, int]]:
    """(run, how it ended, complete MEPs) of each summary, in order."""
    contents = [json.loads(path.read_text()) for path in sorted((folder / "out").glob("*summary*.json"))]
    return [(content["run"], content["ended"], content["meps"]["complete"]) for content in contents]


SENT = [(5, RunResult.SENT, True), (6, RunResult.SENT, True)]


@pytest.mark.loopback
async def test_each_run_ends_at_the_node_and_the_progress_continues(tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        sequence = TwoRuns(node, tmp_path)
        assert await sequence.results() == SENT
        assert sequence.states[-1].events == 2 * IN_RUN
        assert [state.events for state in sequence.states] == sorted(state.events for state in sequence.states)
        await eventually(lambda: len(summaries(tmp_path)) == 2)
        assert not sequence.record.exists()
    assert summaries(tmp_path) == [(5, "confirmed", 3), (6, "confirmed", 3)]


@pytest.mark.loopback
@pytest.mark.parametrize("killed", ["before the confirmation", "after the confirmation"])
async def test_a_run_that_was_stored_is_not_sent_again_whether_or_not_the_node_has_forgotten_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    genuine = Feeder.confirm

    async def confirm(feeder: Feeder) -> None:
        if killed == "after the confirmation":
            await genuine(feeder)
        raise KilledError

    async with running_node(make_config(tmp_path)) as (node, _):
        with monkeypatch.context() as patch:
            patch.setattr(Feeder, "confirm", confirm)
            with pytest.raises(KilledError):
                await TwoRuns(node, tmp_path).results()
        again = TwoRuns(node, tmp_path)
        assert await again.results() == [(5, RunResult.STORED_BEFORE, True), (6, RunResult.SENT, True)]
        assert any("run 5 is not sent" in line for line in again.lines)
        assert not again.record.exists()
        await eventually(lambda: any(run == 6 for run, _, _ in summaries(tmp_path)))
        # The node waits for no feeder of run 5: it is over, not kept.
        assert not node.builder_control.registry.kept
    stored = [(run, meps) for run, _, meps in summaries(tmp_path) if meps]
    assert stored == [(5, 3), (6, 3)]


@pytest.mark.loopback
async def test_a_record_that_cannot_be_written_ends_the_run_before_the_node_forgets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        sequence = TwoRuns(node, tmp_path)
        monkeypatch.setattr(sequence.runs._finished, "path", tmp_path / "nowhere" / "runs")
        [first, second], _ = await sequence.runs.run()
        assert "--memory" in first.error
        assert second.result is RunResult.NOT_SENT
        assert await TwoRuns(node, tmp_path).results() == SENT
    assert [meps for run, _, meps in summaries(tmp_path) if run == 5 and meps] == [3]


def test_a_feeder_of_a_later_run_waits_as_long_as_another_run_is_active() -> None:
    for follows_run in (False, True):
        refusals = HelloRefusals(follows_run=follows_run)
        refusals.refused(0, HelloRefusal.RUN_ACTIVE, "run 5 is active, run 6 must wait")
        overdue = refusals.overdue(10 * PATIENCE_NS, takes_others=False)
        assert (overdue is None) is follows_run
        refusals.refused(0, HelloRefusal.NAME_TAKEN, "another process")
        assert refusals.overdue(10 * PATIENCE_NS, takes_others=False) is not None


def nodes_of(run: int) -> Nodes:
    bench = Bench()
    bench.feeder.identity = replace(bench.feeder.identity, run=run)
    return Nodes([NodeGroup("tcp://node:1", [bench.feeder])])


def test_followers_of_earlier_runs_hear_that_all_is_acknowledged_and_later_ones_wait() -> None:
    memory = AssignmentMemory(None, run=6, nodes=["tcp://node:1"])
    supervisor = Supervisor(nodes_of(6), memory, earlier=(5,), later=(7,))
    supervisor._list.assign(0, 0)
    try:
        answers = {run: supervisor.answer_to(Follow("2/2", run, "tcp://node:1", "", 0)) for run in (5, 6, 7, 8)}
        assert [answers[run].error for run in (5, 6, 7)] == [""] * 3
        assert [answers[run].meps for run in (5, 6, 7)] == [(), (0,), ()]
        assert answers[8].error == "supervisor feeds run 6, not 8"
        early, late = FollowedList(nodes_of(5)), FollowedList(nodes_of(7))
        for _ in range(2):
            early.take(answers[5])
            late.take(answers[7])
        assert early.is_acknowledged(1 << 40)
        assert not late.is_acknowledged(0)
        assert late.node_for(0) is None
    finally:
        supervisor.close()


REPORT = FeedReport(2, 16, 4, 100, 1, {}, 0, [], 1.5, {})


def outcomes(*results: RunResult, error: str = "") -> Sequence[RunOutcome]:
    report = replace(REPORT, error=error)
    return [
        RunOutcome(run, result, report if result is RunResult.SENT else None, result is not RunResult.NOT_SENT)
        for run, result in zip(RUNS, results, strict=True)
    ]


def test_a_run_that_one_of_several_processes_has_sent_was_sent() -> None:
    before, sent, not_sent = RunResult.STORED_BEFORE, RunResult.SENT, RunResult.NOT_SENT
    joined = join_outcomes([outcomes(before, sent), outcomes(sent, sent)])
    assert [(each.result, each.complete) for each in joined] == [(sent, True), (sent, True)]
    joined = join_outcomes([outcomes(before, not_sent), outcomes(before, not_sent)])
    assert [each.result for each in joined] == [before, not_sent]
    joined = join_outcomes([outcomes(sent, not_sent), outcomes(sent, not_sent)], "a job has ended")
    assert [(each.error, each.complete) for each in joined] == [("a job has ended", False), ("", False)]
    # The others were ended because of it.
    ended = outcomes(sent, not_sent, error="ended by SIGTERM")
    assert join_outcomes([ended, ended], "a job has ended")[0].error == "a job has ended"


def test_the_totals_of_runs_are_sums_and_one_run_keeps_its_report() -> None:
    assert sum_of_reports([REPORT]) is REPORT
    total = sum_of_reports([REPORT, replace(REPORT, unacknowledged=1, unacknowledged_meps=[(3, 3)], error="lost")])
    assert (total.meps, total.events, total.seconds, total.unacknowledged) == (4, 32, 3.0, 1)
    assert (total.unacknowledged_meps, total.error) == ([], "lost")
    assert sum_of_reports([]).meps == 0
