"""Processes of `hltnode stream` begin at one time, and a slice is as late as its last part."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.mep_streams.replay_jobs import Jobs
from hltnode.daemon.commands.mep_streams.stream_jobs import BEGIN_NS, Begin, JointLateness, JointStream, PartProgress
from hltnode.daemon.replay.real_time import IN_TIME_NS, Lateness, RealTimePacer
from hltnode.daemon.replay.replaying import ReplayState
from hltnode.daemon.replay.run_sequence import RunOutcome, RunResult
from hltnode.daemon.replay.single_node import FeedReport
from tests.daemon.fakes import synthetic_meps
from tests.daemon.manual_clock import ManualClock

MS = 1_000_000


class FakeJob:
    """A process that says what the test gives it."""

    def __init__(self) -> None:
        self.notes: list[PartProgress] = []
        self.orders: list[object] = []

    def take_notes(self) -> list[PartProgress]:
        notes, self.notes = self.notes, []
        return notes

    def order(self, order: object) -> None:
        self.orders.append(order)


def test_a_slice_is_as_late_as_its_last_part() -> None:
    joint = JointLateness(2)
    joint.add(0, [0, 30 * MS, 0])
    assert joint.lateness == Lateness(), "the other part has sent nothing yet"
    joint.add(1, [IN_TIME_NS + 1])
    assert joint.lateness == Lateness(0, 1, IN_TIME_NS + 1, IN_TIME_NS + 1)
    joint.add(1, [-5, 20 * MS])
    assert joint.lateness == Lateness(in_time=0, late=3, last_ns=20 * MS, largest_ns=30 * MS)
    joint.add(1, [0])
    assert joint.lateness.late == 3


def test_the_processes_begin_together_when_all_are_ready() -> None:
    jobs: list[Any] = [FakeJob(), FakeJob()]
    behind: list[int] = []
    stream = JointStream(2, behind.append, now=lambda: 7)
    jobs[0].notes = [PartProgress(True, (), 0)]
    jobs[1].notes = [PartProgress(False, (), 0)]
    stream.take(jobs)
    assert [job.orders for job in jobs] == [[], []]
    jobs[1].notes = [PartProgress(True, (), 0)]
    stream.take(jobs)
    stream.take(jobs)
    assert [job.orders for job in jobs] == [[Begin(7 + BEGIN_NS)]] * 2
    jobs[0].notes, jobs[1].notes = [PartProgress(True, (3,), 40)], [PartProgress(True, (4, 5), 20)]
    stream.take(jobs)
    assert behind == [0, 0, 0, 40]
    assert stream.lateness == Lateness(in_time=1, last_ns=4, largest_ns=4)


async def test_due_times_count_from_the_begin_that_is_given() -> None:
    clock = ManualClock()

    class GivenBegin(RealTimePacer):
        async def first_begin_ns(self) -> int:
            return 70 * MS

    pacer = GivenBegin(20 * MS, clock)
    [mep] = synthetic_meps(1)
    admitting = asyncio.create_task(pacer.admit(mep))
    await clock.advance(0.089)
    assert not admitting.done()
    await clock.advance(0.001)
    await admitting
    pacer.sent(mep)
    assert pacer.lateness == Lateness(in_time=1)


class FakeProcess:
    """The process of a job, which has ended."""

    def __init__(self, name: str, exitcode: int) -> None:
        self.name, self.exitcode = name, exitcode

    def join(self, timeout: float) -> None:
        pass


class EndedJob:
    """A job that is found to have ended, with an error of its outcomes or without outcomes."""

    def __init__(self, name: str, exitcode: int, error: str | None) -> None:
        self.process = FakeProcess(name, exitcode)
        self.state = ReplayState()
        self.has_begun, self.is_over = True, False
        self.lines: list[str] = []
        self.error = ""
        report = FeedReport(2, 16, 4, 100, 1, {}, 0, [], 1.5, {}, error=error or "")
        self.outcomes = None if error is None else [RunOutcome(7, RunResult.SENT, report)]

    def read(self) -> None:
        self.is_over = True

    def signal(self, number: int) -> None:
        pass


class NoScreen:
    """Shows nothing."""

    def show(self, state: ReplayState) -> None:
        pass


@pytest.mark.parametrize(
    ("exitcode", "text"),
    [
        (-9, "the process stream 2/3 was killed by signal 9 (Killed)"),
        (1, "the process stream 2/3 has ended with exit code 1"),
    ],
)
async def test_the_report_names_the_process_that_died_before_others_that_ended_with_it(
    exitcode: int, text: str
) -> None:
    jobs: list[Any] = [
        EndedJob("stream 1/3", 0, "refused: a feeder left"),
        EndedJob("stream 2/3", exitcode, None),
        EndedJob("stream 3/3", 0, "ended by SIGTERM"),
    ]
    screen: Any = NoScreen()
    followed = Jobs(jobs, [7], screen, ends_by_signal=True)
    [outcome], _ = await followed.run(lambda: contextlib.nullcontext(None))
    assert outcome.error == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--processes", "2", "--sources", "3"], "each process has one connection"),
        (["--processes", "0"], "greater than or equal to 1"),
    ],
    ids=["connections", "none"],
)
def test_processes_that_do_not_fit_are_refused(options: list[str], text: str) -> None:
    result = CliRunner().invoke(app, ["stream", "--chain", "km3net", *options])
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())
