"""The runs of a replay, one after the other: each with its own feeders, and the record of the finished ones."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, unique

from hltnode.client.feeder import FeederRefusedError
from hltnode.client.refused_fragments import RefusedCount
from hltnode.daemon.replay.assignment_memory import AssignmentMemory
from hltnode.daemon.replay.finished_runs import FinishedRun, FinishedRuns
from hltnode.daemon.replay.replaying import Replay, Replaying, ReplayState
from hltnode.daemon.replay.single_node import FeedReport, join_reports


@unique
class RunResult(StrEnum):
    """What a replay did with a run: it sent it, an earlier replay had stored it, or the replay ended before it."""

    SENT = "sent"
    STORED_BEFORE = "stored_before"
    NOT_SENT = "not_sent"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of one run; a run that was not sent has no report."""

    run: int
    result: RunResult
    report: FeedReport | None = None
    complete: bool = False
    """True if every fragment was accepted and every MEP acknowledged."""

    @property
    def error(self) -> str:
        """Why the run ended early."""
        return "" if self.report is None else self.report.error


class ReplayRuns:
    """Replays the runs of an input, one after the other. An error or a signal ends the replay.

    A single run needs no record: the nodes know an unfinished one.

    Args:
        show: gets the progress several times a second.
        say: prints a line.
        finished: record of the finished runs; None for a single run. The replay deletes it at its end.
    """

    def __init__(
        self,
        replays: Sequence[Replay],
        show: Callable[[ReplayState], None],
        say: Callable[[str], None],
        finished: FinishedRuns | None = None,
    ) -> None:
        self._replays = replays
        self._show = show
        self._say = say
        self._finished = finished
        self._before = ReplayState()
        self._current: Replaying | None = None
        self._end_after: int | None = None

    def pause_or_resume(self) -> None:
        """Pause, or continue after a pause."""
        if self._current is not None:
            self._current.pause_or_resume()

    def end_after(self, n_meps: int) -> None:
        """End the input of a single run after this number of MEPs."""
        self._end_after = n_meps
        if self._current is not None:
            self._current.end_after(n_meps)

    async def run(self) -> tuple[list[RunOutcome], int | None]:
        """The outcome of each run, and the number of the signal that ended the replay early."""
        outcomes: list[RunOutcome] = []
        ended_by: int | None = None
        for replay in self._replays:
            if ended_by is not None or any(outcome.error for outcome in outcomes):
                outcomes.append(RunOutcome(replay.stream.run, RunResult.NOT_SENT))
                continue
            outcome, ended_by = await self._run(replay)
            outcomes.append(outcome)
            self._count(replay, outcome)
        if self._finished is not None and all(self._is_over(replay) for replay in self._replays):
            self._finished.forget([(replay.stream.run, replay.stream.input_name) for replay in self._replays])
        return outcomes, ended_by

    async def _run(self, replay: Replay) -> tuple[RunOutcome, int | None]:
        stream, finished = replay.stream, self._finished
        if finished is None:
            replaying = self._start(replay)
            report, ended_by = await replaying.run()
            assert report is not None
            return _sent(replay, report), ended_by
        known = finished.find(stream.run, stream.input_name)
        if known is not None and known.confirmed:
            self._say_stored(known)
            return RunOutcome(stream.run, RunResult.STORED_BEFORE, complete=known.complete), None
        self._say(f"run {stream.run}: {stream.n_events} events")
        replaying = self._start(replay, known)
        try:
            report, ended_by = await replaying.run()
        except FeederRefusedError as refusal:
            # Only for a run that was stored before; the node has forgotten it, or an operator has to end it.
            assert known is not None
            self._say(f"run {stream.run} is stored; the node does not take its confirmation: {refusal}")
            report, ended_by = None, replaying.ended_by
        if report is None and ended_by is None:
            assert known is not None
            finished.confirmed(stream.run, stream.input_name)
            self._say_stored(known)
            return RunOutcome(stream.run, RunResult.STORED_BEFORE, complete=known.complete), None
        if report is None:
            return RunOutcome(stream.run, RunResult.NOT_SENT), ended_by
        return _sent(replay, report), ended_by

    def _start(self, replay: Replay, known: FinishedRun | None = None) -> Replaying:
        stream, finished = replay.stream, self._finished

        def stored(last_mep: int | None, complete: bool, /) -> None:
            if finished is not None:
                finished.stored(stream.run, stream.input_name, last_mep, complete=complete)

        def over() -> None:
            if finished is not None:
                finished.confirmed(stream.run, stream.input_name)

        def continues(memory: AssignmentMemory) -> None:
            self._say(f"continues run {stream.run} after MEP {memory.next_mep - 1}, according to {memory.path}")

        was_paused = self._current is not None and self._current.is_paused
        self._current = Replaying(replay, self._show_all, continues, stored=stored, over=over, known=known)
        if was_paused:
            self._current.pause_or_resume()
        if self._end_after is not None:
            self._current.end_after(self._end_after)
        return self._current

    def _is_over(self, replay: Replay) -> bool:
        assert self._finished is not None
        known = self._finished.find(replay.stream.run, replay.stream.input_name)
        return known is not None and known.confirmed

    def _say_stored(self, known: FinishedRun) -> None:
        assert self._finished is not None
        self._say(
            f"run {known.run} is not sent: a replay that was interrupted stored it at {known.time}, according to "
            f"{self._finished.path}; to send it again, remove that file"
        )

    def _show_all(self, state: ReplayState) -> None:
        before = self._before
        self._show(
            replace(
                state,
                meps=before.meps + state.meps,
                events=before.events + state.events,
                bytes=before.bytes + state.bytes,
            )
        )

    def _count(self, replay: Replay, outcome: RunOutcome) -> None:
        report, before = outcome.report, self._before
        if report is not None:
            self._before = replace(
                before,
                meps=before.meps + report.meps,
                events=before.events + report.events,
                bytes=before.bytes + report.bytes,
            )
        else:
            self._before = replace(before, events=before.events + (replay.stream.n_events or 0))


def _sent(replay: Replay, report: FeedReport) -> RunOutcome:
    is_complete = report.complete and not report.unconfirmed
    return RunOutcome(replay.stream.run, RunResult.SENT, report, is_complete)


def join_outcomes(of_processes: Sequence[Sequence[RunOutcome]], error: str = "") -> list[RunOutcome]:
    """The outcomes of several processes that fed different sources of the same runs.

    A run that some of them sent was sent. `error` is why the replay ended early; errors of the last run that differ
    from it say what it has done to other processes.
    """
    joined = []
    for outcomes in zip(*of_processes, strict=True):
        run = outcomes[0].run
        complete = all(outcome.complete for outcome in outcomes)
        if reports := [outcome.report for outcome in outcomes if outcome.report is not None]:
            joined.append(RunOutcome(run, RunResult.SENT, join_reports(reports), complete))
        elif all(outcome.result is RunResult.STORED_BEFORE for outcome in outcomes):
            joined.append(RunOutcome(run, RunResult.STORED_BEFORE, complete=complete))
        else:
            joined.append(RunOutcome(run, RunResult.NOT_SENT))
    last = next((i for i in reversed(range(len(joined))) if joined[i].report is not None), None)
    if error and last is not None:
        report = joined[last].report
        assert report is not None
        joined[last] = replace(joined[last], report=replace(report, error=error), complete=False)
    return joined


def sum_of_reports(reports: Sequence[FeedReport]) -> FeedReport:
    """The totals of several runs, without the ids of MEPs, which each run numbers from 0; of one run, its report."""
    if len(reports) == 1:
        return reports[0]
    refused: dict[str, RefusedCount] = {}
    injected: Counter[str] = Counter()
    for report in reports:
        injected.update(report.injected)
        for reason, count in report.refused.items():
            before = refused.get(reason, RefusedCount(0, 0))
            refused[reason] = RefusedCount(before.fragments + count.fragments, before.meps + count.meps)
    summed = ("meps", "events", "fragments", "bytes", "resent", "unacknowledged", "seconds", "earlier", "reassigned")
    assert set(summed) < {field.name for field in dataclasses.fields(FeedReport)}
    return FeedReport(
        **{name: sum(getattr(report, name) for report in reports) for name in summed},
        refused=refused,
        unacknowledged_meps=[],
        injected=dict(injected),
        error=next((report.error for report in reports if report.error), ""),
    )
