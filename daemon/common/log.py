"""Log lines: JSON for machines or coloured text for a terminal, on standard error.

A thread writes them (`background_stream`): a log that blocks or fails never acts on the node. Lost lines are counted.

Pass values as keywords (`log.info("mep_closed", mep=7, reason="timeout")`), never formatted into the event name. This
way lines can be counted and searched, and no secret slips into a sentence.
"""

import logging
import sys
import warnings
from typing import TextIO

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from hltnode.daemon.common.background_stream import BackgroundStream
from hltnode.daemon.common.recent_lines import RECENT_LINES
from hltnode.daemon.common.vocabulary import LogFormat


class _Output:
    """The stream of the log; a process has one log."""

    def __init__(self) -> None:
        self.lines_lost_before = 0
        """Lines that earlier streams lost."""
        self.stream: BackgroundStream | None = None


_OUTPUT = _Output()


def lines_lost() -> int:
    """Log lines of this process that were not written: the reader stalled or has gone, or the disk is full."""
    return _OUTPUT.lines_lost_before + (0 if _OUTPUT.stream is None else _OUTPUT.stream.lines_lost)


def log_fails() -> bool:
    """Whether the last line of the log was lost."""
    return _OUTPUT.stream is not None and _OUTPUT.stream.fails


def drain() -> None:
    """Wait for the queued lines, for a limited time."""
    if _OUTPUT.stream is not None:
        _OUTPUT.stream.drain()


def configure(level: str, format: LogFormat, output: TextIO | None = None) -> None:
    """Send structlog, logging (used by asyncio) and warnings through the same processors to a stream."""
    drain()
    _OUTPUT.lines_lost_before = lines_lost()
    stream = _OUTPUT.stream = BackgroundStream(sys.stderr if output is None else output)
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        RECENT_LINES,
    ]
    render: list[Processor]
    if format is LogFormat.JSON:
        render = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        render = [
            structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, *render],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(stream),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    remove_meta: Processor = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove_meta, *render])
    )
    logging.basicConfig(handlers=[handler], level=threshold, force=True)
    warnings.showwarning = _warned


def _warned(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Log a warning of a library or a back end; replaces `warnings.showwarning`."""
    del file, line
    get_logger("warnings").warning("warning", text=str(message), category=category.__name__, at=f"{filename}:{lineno}")


def set_level(level: str) -> None:
    """Set the log level of all loggers; all other settings stay."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(**{**structlog.get_config(), "wrapper_class": structlog.make_filtering_bound_logger(threshold)})
    # The root logger as well: messages of asyncio pass through it.
    logging.root.setLevel(threshold)


def get_logger(part: str) -> FilteringBoundLogger:
    """A logger whose lines carry `part`, the name of the module."""
    logger: FilteringBoundLogger = structlog.get_logger(part=part)
    return logger
