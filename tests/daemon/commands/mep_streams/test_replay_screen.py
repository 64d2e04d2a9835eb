"""The output of a replay: its state while it runs, and its report."""

import io

import pytest
from rich.console import Console

from hltnode.client.refused_fragments import RefusedCount
from hltnode.daemon.commands.mep_streams.replay_report import print_report
from hltnode.daemon.commands.mep_streams.replay_screen import ReplayScreen, join_states
from hltnode.daemon.replay.replaying import ReplayState
from hltnode.daemon.replay.single_node import FeedReport

COLUMNS = 80


def lines_of(*states: ReplayState) -> list[str]:
    """The output for states at intervals of one second, one line each."""
    printed = io.StringIO()
    times = iter(range(0, 10_000, 100))
    screen = ReplayScreen(Console(file=printed, width=COLUMNS), None, clock=lambda: float(next(times)))
    with screen:
        for state in states:
            screen.show(state)
    return [line for line in printed.getvalue().splitlines() if line.strip()]


def test_the_start_and_the_end_of_a_pause_are_shown() -> None:
    sends = ReplayState(meps=1, events=1, backlog=1, credits=1)
    paused = ReplayState(meps=1, events=1, backlog=1, credits=1, is_paused=True)
    said = lines_of(sends, paused, sends)
    assert [line.split()[0] for line in said] == ["sends", "paused:", "paused", "goes", "sends"]
    assert said[0].startswith("sends 1 event, ")
    assert said[0].endswith("1 of 1 MEP")


def test_several_processes_that_agree_on_their_last_mep_are_not_called_paused() -> None:
    said = lines_of(
        ReplayState(meps=7, events=70),
        ReplayState(meps=7, events=70, is_paused=True, is_ending=True),
        ReplayState(meps=8, events=80, is_ending=True),
    )
    assert [line.split()[0] for line in said] == ["sends", "ends", "ends"]


def test_backlog_and_credits_of_several_processes_are_those_of_one() -> None:
    # The second one was read after the acknowledgement of a batch, the third one has not begun.
    joined = join_states(
        [ReplayState(backlog=16, credits=16), ReplayState(backlog=3, credits=8), ReplayState(backlog=0, credits=0)]
    )
    assert (joined.backlog, joined.credits) == (16, 16)


def test_meps_and_events_of_several_processes_are_those_of_the_slowest_and_bytes_add_up() -> None:
    joined = join_states(
        [
            ReplayState(meps=4, events=40, bytes=1, missing=("b", "a")),
            ReplayState(meps=7, events=30, bytes=10, is_paused=True, missing=("b",)),
            ReplayState(meps=9, events=90, bytes=100),
        ]
    )
    assert (joined.meps, joined.events, joined.bytes) == (4, 30, 111)
    assert (joined.is_paused, joined.is_ending, joined.missing) == (True, False, ("a", "b"))


def report(n: int, **changes: object) -> FeedReport:
    counts = {"meps": n, "events": 100 * n, "fragments": 1025 * n, "bytes": 0, "resent": n, "unacknowledged": n}
    nothing = {"refused": {}, "unacknowledged_meps": [], "injected": {}, "reassigned": n, "error": ""}
    return FeedReport(**{**counts, **nothing, "seconds": 28_800.0, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [0, 1, 5_184_000])
def test_the_report_of_a_shift_fits_a_terminal(n: int, capsys: pytest.CaptureFixture[str]) -> None:
    print_report(report(n, refused={"bad_crc": RefusedCount(n, n)}))
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= COLUMNS
    assert ("1 MEPs" in printed) is False
    assert f"{n} MEP" in printed


def test_reasons_of_a_node_in_the_report_do_not_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(report(1, refused={"bad\x1b[2J\u202ecrc": RefusedCount(1, 1)}))
    text = capsys.readouterr().out
    assert "\\x1b[2J\\u202ecrc" in text
    assert "\x1b[2J" not in text
