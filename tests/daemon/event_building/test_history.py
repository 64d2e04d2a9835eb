"""The bounded log of the builder, and its output."""

import subprocess
import sys
from pathlib import Path

from hltnode.daemon.event_building.history import ENTRIES, MAX_LINE
from hltnode.daemon.event_building.stimuli_and_effects import (
    AcknowledgedBelow,
    CloseMep,
    FrameDamaged,
    StartRun,
    Tick,
)
from hltnode.protocol.errors import RejectReason
from tests.daemon.event_building.test_event_builder import (
    MS,
    RUN,
    fragment,
    leave,
    make_builder,
    sealed,
    send,
    send_mep,
)

REPOSITORY = Path(__file__).resolve().parents[3]


def test_the_history_names_stimuli_with_their_effects_in_order() -> None:
    builder = make_builder()
    send_mep(builder, 0, now=5)
    send(builder, fragment(0, 10), now=6)
    builder.handle(7, FrameDamaged(RejectReason.BAD_CRC, 20, 3, True))
    builder.handle(8, AcknowledgedBelow(1))
    start, complete, rejected, damaged, acknowledged = builder.history.lines()
    assert start.startswith(f"0 StartRun(run={RUN}")
    assert "GrantCredit" in start
    assert complete == "MEP 0 is complete"
    assert rejected.startswith("6 fragment -> [Reject")
    assert "duplicate" in rejected
    assert "FrameDamaged" in damaged
    assert "Reject" in damaged
    assert acknowledged == "8 AcknowledgedBelow(below=1) -> []"


def test_only_ticks_with_effects_are_noted() -> None:
    builder = make_builder()
    builder.handle(1, Tick())
    assert len(builder.history.lines()) == 1
    send(builder, fragment(0, 10))
    builder.handle(100 * MS, Tick())
    line = builder.history.lines()[-1]
    assert "Tick()" in line
    assert "'CloseMep', 0, 'timeout', '1 fragments'" in line
    assert "'SealSlot', 0, '1 MEPs', 0" in line


def test_the_recent_history_ends_with_the_open_meps() -> None:
    builder = make_builder()
    send(builder, fragment(4, 10))
    assert builder.recent_history()[-1].startswith("open: MepRecord(mep=4, slot=0")


def test_the_history_is_bounded_in_entries_and_in_the_length_of_a_line() -> None:
    builder = make_builder(meps_per_slot=1, start=False)
    builder.handle(0, StartRun(RUN, tuple(range(10, 1000)), 0, 10))
    assert len(builder.history.lines()[0]) == MAX_LINE
    for mep in range(ENTRIES + 10):
        builder.handle(mep, AcknowledgedBelow(mep))
    lines = builder.history.lines()
    assert len(lines) == ENTRIES
    assert lines[0].startswith("10 ")


def test_the_history_keeps_no_mep_record_alive() -> None:
    builder = make_builder(meps_per_slot=1)
    effects = send_mep(builder, 0)
    [record] = [effect.record for effect in effects if isinstance(effect, CloseMep)]
    for slot in sealed(effects):
        leave(builder, slot)
    del effects
    assert any("SealSlot" in line for line in builder.history.lines())
    # This name, and the argument of the call.
    assert sys.getrefcount(record) == 2


def test_a_failed_test_prints_the_history_of_its_builder(tmp_path: Path) -> None:
    test = tmp_path / "test_that_fails.py"
    test.write_text(
        "from tests.daemon.event_building.test_event_builder import make_builder, send_mep\n"
        "def test_it() -> None:\n"
        "    builder = make_builder()\n"
        "    send_mep(builder, 0)\n"
        "    assert not builder.counters.meps_opened\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "tests.daemon.failure_report", "--rootdir", str(tmp_path)]
    failed = subprocess.run(
        [*command, "-p", "no:cacheprovider", str(test)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "history of the event builder of run 7" in failed.stdout
    assert "MEP 0 is complete" in failed.stdout
