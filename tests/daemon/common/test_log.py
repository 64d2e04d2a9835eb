"""Log lines: their form, and their level."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator

import pytest
import structlog

from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    with warnings.catch_warnings():
        yield
    structlog.reset_defaults()
    logging.basicConfig(handlers=handlers, level=level, force=True)


def test_a_line_is_one_json_object_with_its_part_and_values() -> None:
    stream = io.StringIO()
    log.configure("info", LogFormat.JSON, stream)
    log.get_logger("builder").info("mep_closed", mep=7, reason="timeout")
    line = json.loads(stream.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "mep_closed", "level": "info", "mep": 7, "part": "builder", "reason": "timeout"}


def test_lines_below_the_level_are_suppressed() -> None:
    stream = io.StringIO()
    log.configure("warning", LogFormat.JSON, stream)
    log.get_logger("builder").info("mep_closed")
    assert stream.getvalue() == ""


def test_an_exception_stays_on_one_line() -> None:
    stream = io.StringIO()
    log.configure("info", LogFormat.JSON, stream)
    try:
        raise ValueError("broken")
    except ValueError:
        log.get_logger("builder").exception("failed")
    assert stream.getvalue().count("\n") == 1
    assert "ValueError: broken" in json.loads(stream.getvalue())["exception"]


def test_messages_of_other_libraries_take_the_same_form() -> None:
    stream = io.StringIO()
    log.configure("info", LogFormat.JSON, stream)
    logging.warning("Task was destroyed but it is pending!")
    line = json.loads(stream.getvalue())
    assert (line["event"], line["level"]) == ("Task was destroyed but it is pending!", "warning")


def test_a_warning_is_a_line_with_its_place() -> None:
    stream = io.StringIO()
    log.configure("info", LogFormat.JSON, stream)
    warnings.simplefilter("always")
    warnings.warn("no compiler", stacklevel=1)
    line = json.loads(stream.getvalue())
    assert (line["part"], line["event"], line["text"], line["category"]) == (
        "warnings",
        "warning",
        "no compiler",
        "UserWarning",
    )
    assert line["at"].startswith(f"{__file__}:")


def test_the_console_format_is_readable_text() -> None:
    stream = io.StringIO()
    log.configure("info", LogFormat.CONSOLE, stream)
    log.get_logger("builder").info("mep_closed", mep=7)
    assert "mep_closed" in stream.getvalue()
    assert "mep=7" in stream.getvalue()


def test_a_logger_made_before_the_configuration_follows_it() -> None:
    early = log.get_logger("early")
    stream = io.StringIO()
    log.configure("info", LogFormat.JSON, stream)
    early.info("hello")
    assert json.loads(stream.getvalue())["part"] == "early"


def test_a_new_level_applies_to_existing_loggers() -> None:
    stream = io.StringIO()
    log.configure("warning", LogFormat.JSON, stream)
    logger = log.get_logger("builder")
    logger.info("hidden")
    log.set_level("debug")
    logger.debug("shown")
    assert logging.root.level == logging.DEBUG
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["shown"]
