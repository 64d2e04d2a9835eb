"""Log lines: JSON for machines or coloured text for a terminal, on standard error.

Values go in as keywords (`log.info("mep_closed", mep=7, reason="timeout")`), never formatted into the event name, so
that lines can be counted and searched, and so that nothing secret slips into a sentence.
"""

import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TextIO

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from hltnode.daemon.vocabulary import LogFormat

# More kinds of message than the code has; hostile input must not make the memory of the limiter grow.
MAX_LIMITED_KEYS = 1024


def configure(level: str, format: LogFormat, stream: TextIO | None = None) -> None:
    """Send structlog and the standard library's logging (asyncio's complaints) through the same processors."""
    stream = sys.stderr if stream is None else stream
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
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
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    remove_meta: Processor = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove_meta, *render])
    )
    logging.basicConfig(handlers=[handler], level=threshold, force=True)


def set_level(level: str) -> None:
    """Another threshold for the lines of all loggers, with everything else as configured."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(**{**structlog.get_config(), "wrapper_class": structlog.make_filtering_bound_logger(threshold)})
    # The root logger itself: asyncio's complaints come through it.
    logging.root.setLevel(threshold)


def get_logger(part: str) -> FilteringBoundLogger:
    """Logger whose lines carry `part`, the module of the daemon that speaks."""
    logger: FilteringBoundLogger = structlog.get_logger(part=part)
    return logger


class RateLimit:
    """At most one line per `interval_ns` and key; the next line says how many were left out."""

    def __init__(self, interval_ns: int, clock_ns: Callable[[], int]) -> None:
        self._interval_ns = interval_ns
        self._clock_ns = clock_ns
        self._seen: OrderedDict[Hashable, tuple[int, int]] = OrderedDict()

    def due(self, key: Hashable) -> int | None:
        """Number of lines left out since the last one for `key` if a line is due now, else None."""
        now = self._clock_ns()
        last, left_out = self._seen.get(key, (now - self._interval_ns, 0))
        if now - last < self._interval_ns:
            self._seen[key] = (last, left_out + 1)
            return None
        self._seen[key] = (now, 0)
        self._seen.move_to_end(key)
        if len(self._seen) > MAX_LIMITED_KEYS:
            self._seen.popitem(last=False)
        return left_out
