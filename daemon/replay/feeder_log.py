"""What happens between a feeder and its node, as log lines."""

import time

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit

LOG_INTERVAL_NS = 10_000_000_000
# Items of a list in one log line.
SHOWN_ITEMS = 32
# What is no trouble.
_EXPECTED = frozenset({"welcome", "node_leaves", "waiting_for_node"})

log = get_logger("feeder")


class FeederLog:
    """The report of one feeder: a line for each kind and reason in ten seconds."""

    def __init__(self, feeder: str) -> None:
        self._feeder = feeder
        self._limit = RateLimit(LOG_INTERVAL_NS, time.monotonic_ns)

    def __call__(self, event: str, /, **details: object) -> None:
        """Log what has happened, if a line is due."""
        left_out = self._limit.due((event, details.get("reason")))
        if left_out is None:
            return
        shown = {key: value[:SHOWN_ITEMS] if isinstance(value, tuple) else value for key, value in details.items()}
        write = log.info if event in _EXPECTED else log.warning
        write(event, feeder=self._feeder, left_out=left_out, **shown)
