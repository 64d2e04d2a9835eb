"""The last warnings and errors of the log: kept, few and short."""

from __future__ import annotations

import io
import logging

from hltnode.daemon.common import log
from hltnode.daemon.common.recent_lines import MAX_TEXT, MAX_VALUE, RECENT_LINES, RecentLines
from hltnode.daemon.common.vocabulary import LogFormat


def test_warnings_and_errors_of_all_loggers_are_kept_newest_first() -> None:
    stream = io.StringIO()
    log.configure("info", LogFormat.JSON, stream)
    logger = log.get_logger("part_a")
    logger.info("not_kept")
    logger.warning("first", run=7, name="x")
    logging.getLogger("asyncio").error("second")  # noqa: TID251
    newest, before = RECENT_LINES.newest_first()[:2]
    assert (newest.level, newest.event) == ("error", "second")
    assert (before.level, before.part, before.event, before.text) == ("warning", "part_a", "first", "run=7 name=x")
    assert "not_kept" in stream.getvalue()


def test_number_and_length_of_kept_lines_are_limited() -> None:
    lines = RecentLines(most=3)
    for i in range(1000):
        lines(None, "warning", {"level": "warning", "event": f"e{i}", **{f"key{k}": "x" * 10_000 for k in range(50)}})
    kept = lines.newest_first()
    assert [line.event for line in kept] == ["e999", "e998", "e997"]
    assert all(len(line.text) <= MAX_TEXT for line in kept)
    lines(None, "error", {"level": "error", "event": "y" * 10_000})
    assert len(lines.newest_first()[0].event) <= MAX_VALUE
