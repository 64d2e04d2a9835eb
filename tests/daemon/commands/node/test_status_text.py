"""The overview of `hltnode ctl status`, and its JSON form."""

import json

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.node import ctl
from hltnode.daemon.commands.node.status_text import status_text
from hltnode.protocol.transport.run_control_messages import CommandName, Reply, RunState

SHORT = {
    "node": "farm7",
    "session": "s1",
    "state": "running",
    "run": 4711,
    "closing": None,
    "kept": 1,
    "version": "0.5.0",
    "chain": "lhcb",
    "tck": "0x1234ABCD",
    "accounting": {
        "fragments": {"received": 3200, "built": 3100, "in_build": 100, "corrupt": 0, "unaccounted": 0},
        "meps": {"opened": 1032, "complete": 1031, "open": 1, "unaccounted": 0},
    },
    "kept_runs": [4710],
}


def test_the_short_answer_becomes_an_overview_without_empty_classes() -> None:
    assert status_text(SHORT).splitlines() == [
        "farm7: running, run 4711",
        "  software    hltnode 0.5.0, chain lhcb, TCK 0x1234ABCD",
        "  MEPs        1,032 opened: 1,031 complete, 1 open",
        "  fragments   3,200 received: 3,100 built, 100 in build",
        "  kept runs   1: 4710",
    ]


COMBINER = {
    **{"endpoint": "tcp://c:5571", "session": "s", "answers": True, "silent_seconds": 0.42, "oldest_seconds": 1.25},
    **{"held_bytes": 12_300_000, "max_bytes": 1_073_741_824, "held_slices": 3},
    **{"slices": {"joined": 4321, "timeout": 0, "no_room": 5}, "faults": {"unsent": 2, "refused": 0}},
}


def test_a_node_that_holds_slices_shows_them_and_its_combiner() -> None:
    assert status_text(SHORT | {"combiner": COMBINER}).splitlines()[4:6] == [
        "  combiner    tcp://c:5571 answers, last 0.4 s ago",
        "  held        3 slices, the oldest for 1.2 s, 12.3 of 1,073.7 MB; left: 4,321 joined, 5 no room",
    ]
    silent = COMBINER | {"answers": False, "silent_seconds": 7.0}
    assert "  combiner    tcp://c:5571 is silent, last 7.0 s ago" in status_text(SHORT | {"combiner": silent})
    new = silent | {"session": None, "slices": {"joined": 0}}
    assert "  combiner    tcp://c:5571 has not answered yet (7 s)" in status_text(SHORT | {"combiner": new})
    assert status_text(SHORT | {"combiner": new}).splitlines()[5].endswith("left: none")
    assert "combiner" not in status_text(SHORT | {"combiner": None})


def test_the_whole_status_also_shows_feeders_slots_and_disk() -> None:
    whole = SHORT | {
        "run": None,
        "closing": 4709,
        "waits_for": "feeders",
        "waits_seconds": 3.2,
        "feeders": [{}, {}],
        "sources": 1025,
        "silent_sources": list(range(20)),
        "slots": {"free": 3, "filling": 0},
        "output_free_bytes": 123_400_000_000,
        "output_queue_bytes": 0,
        "events": {"processed": 12345, "accepted": 67},
        "kept_runs": [{"run": 4710}],
    }
    lines = status_text(whole).splitlines()
    assert lines[0] == "farm7: running, no run, closing run 4709"
    for expected in (
        "  waits for   feeders (3 s)",
        "  events      12,345 processed, 67 accepted",
        "  feeders     2, with 1,025 sources",
        "  silent      20 sources: 0, 1, 2, 3, 4, 5, 6, 7, ...",
        "  slots       3 free",
        "  output      123.4 GB free, 0.0 MB queued",
        "  kept runs   1: 4710",
    ):
        assert expected in lines
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("command", "reply", "code", "expected"),
    [
        ("status", Reply(1, True, RunState.RUNNING, json.dumps(SHORT)), 0, SHORT),
        ("pause", Reply(1, True, RunState.PAUSED, "paused"), 0, {"ok": True, "state": "paused", "text": "paused"}),
        ("start", Reply(1, False, RunState.ERROR, "no"), 1, {"ok": False, "state": "error", "text": "no"}),
    ],
)
def test_scripts_get_json(
    command: str, reply: Reply, code: int, expected: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def request(_connection: object, _name: CommandName, _run: int | None, _timeout: float) -> Reply:
        return reply

    monkeypatch.setattr(ctl.ControlConnection, "request", request)
    result = CliRunner().invoke(app, ["ctl", command, "--json"])
    assert result.exit_code == code
    assert json.loads(result.stdout) == expected
