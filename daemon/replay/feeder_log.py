"""Log lines about the exchange between a feeder and its node."""

import time

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit

LOG_INTERVAL_NS = 10_000_000_000
# Largest number of list items in one log line.
SHOWN_ITEMS = 32
# Normal events, logged with level info.
_EXPECTED = frozenset({"welcome", "node_leaves", "waiting_for_node"})

log = get_logger("feeder")


class FeederLog:
    """Log of one feeder: at most one line per kind and reason in ten seconds."""

    def __init__(self, feeder: str) -> None:
        self._feeder = feeder
        self._limit = RateLimit(LOG_INTERVAL_NS, time.monotonic_ns)

    def __call__(self, event: str, /, **details: object) -> None:
        """Log an event, unless a line of this kind was logged recently."""
        left_out = self._limit.due((event, details.get("reason")))
        if left_out is None:
            return
        shown = {key: value[:SHOWN_ITEMS] if isinstance(value, tuple) else value for key, value in details.items()}
        write = log.info if event in _EXPECTED else log.warning
        write(event, feeder=self._feeder, left_out=left_out, **shown)
