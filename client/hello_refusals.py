"""Decides whether a refused hello is temporary (retry) or permanent (end at once, with an explanation).

No I/O and no clock; times are monotonic nanoseconds.
"""

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.refusals import HelloRefusal

# The node may still process the last run, or another process of the same name may be ending. A refusal that lasts
# longer than this is an error.
PATIENCE_NS = 30_000_000_000
# While the node accepts another connection of this process, only the end of a process of another name can free a place
# for this one. The node detects that after 5 s without messages, for all its connections within seconds.
PLACE_PATIENCE_NS = 3_000_000_000

_NO_PLACE = frozenset({HelloRefusal.TOO_MANY_FEEDERS, HelloRefusal.SOURCE_TAKEN})
_NO_PLACE_ADVICE = (
    "the node accepts another connection of this process: open at most builder.max_feeders connections in all feeders "
    "together (--sources, --part), or raise builder.max_feeders of the node"
)
# Permanent refusals, each with the necessary change.
_HOPELESS: dict[str, str] = {
    HelloRefusal.FOREIGN_CHAIN: "feed a node of that chain, or name the chain that the data are for (--chain)",
    HelloRefusal.FOREIGN_INPUT: "replay the same input to continue that run, replay this one under another run number "
    "(--run), or close that run (hltnode ctl close; hltnode ctl start --run accepts it again)",
    HelloRefusal.NO_SOURCES: "give each connection a source: fewer connections (--sources, --part)",
    HelloRefusal.EVENTS_PER_MEP: "feed fewer events per MEP (--events-per-mep; MEP files keep their packing), "
    "or raise pipeline.max_events and pipeline.max_events_per_mep of the node",
    HelloRefusal.FOREIGN_RUN: "feed the run that the node was configured or started for (--run), or start the node "
    "for this one",
    HelloRefusal.SOURCES_FIXED: "start all feeders of a run together, and let the node wait for them: "
    "builder.min_feeders or builder.expected_sources of the node",
    HelloRefusal.SHADOW: "feed the productive node",
    RejectReason.BAD_VERSION: "install the same version of hltnode on both sides",
    RejectReason.MALFORMED: "install the same version of hltnode on both sides",
    RejectReason.OVERSIZED: "announce fewer sources per connection (--sources)",
}


class HelloRefusals:
    """Refusals of one connection since its last welcome.

    Args:
        follows_run: the process has fed another run before: it waits as long as another run is active, whose other
            feeders may still feed.
    """

    def __init__(self, *, follows_run: bool = False) -> None:
        self._follows_run = follows_run
        self._reason = ""
        self._text = ""
        self._since_ns: int | None = None

    def welcomed(self) -> None:
        """The node accepts this feeder."""
        self._since_ns = None

    def refused(self, now_ns: int, reason: str, text: str) -> str | None:
        """Record a refused hello; returns the message for the user if the refusal is permanent."""
        if self._since_ns is None:
            self._since_ns = now_ns
        self._reason, self._text = reason, text
        advice = _HOPELESS.get(reason)
        return None if advice is None else f"{text}: {advice}"

    def overdue(self, now_ns: int, *, takes_others: bool) -> str | None:
        """The message for the user after too long without a welcome, else None.

        Args:
            takes_others: the node accepted another connection of this process.
        """
        if self._since_ns is None:
            return None
        waited_ns = now_ns - self._since_ns
        if takes_others and self._reason in _NO_PLACE and waited_ns > PLACE_PATIENCE_NS:
            return f"{self._text}: {_NO_PLACE_ADVICE}"
        if self._follows_run and self._reason == HelloRefusal.RUN_ACTIVE:
            return None
        if waited_ns > PATIENCE_NS:
            return f"{self._text}: refused for {PATIENCE_NS * 1e-9:.0f} s"
        return None
