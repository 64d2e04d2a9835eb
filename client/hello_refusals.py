"""What a feeder does about a refused hello: it waits for what can heal, and ends at once over what cannot.

No I/O and no clock; times are monotonic nanoseconds.
"""

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.refusals import HelloRefusal

# A node may be busy with the last run, or another process with the name be at its end: after this time it is an error.
PATIENCE_NS = 30_000_000_000
# While the node takes another connection of this process, a place that this one needs can only become free if a process
# of another name is gone. The node knows that when it has heard nothing for 5 s, of all its connections within seconds.
PLACE_PATIENCE_NS = 3_000_000_000

_NO_PLACE = frozenset({HelloRefusal.TOO_MANY_FEEDERS, HelloRefusal.SOURCE_TAKEN})
_NO_PLACE_ADVICE = (
    "the node takes another connection of this process: all feeders together may open builder.max_feeders connections "
    "(--sources, --part), or builder.max_feeders of the node has to be raised"
)
# Refusals that no waiting heals, and what has to be changed.
_HOPELESS: dict[str, str] = {
    HelloRefusal.FOREIGN_CHAIN: "feed a node of that chain, or name the chain that the data are for (--chain)",
    HelloRefusal.NO_SOURCES: "give each connection a source: fewer connections (--sources, --part)",
    HelloRefusal.EVENTS_PER_MEP: "feed fewer events per MEP (--events-per-mep; MEP files keep their packing), "
    "or raise pipeline.max_events of the node",
    HelloRefusal.FOREIGN_RUN: "feed the run that the node was configured or started for (--run), or start the node "
    "for this one",
    HelloRefusal.SOURCES_FIXED: "start all feeders of a run together, and let the node wait for them: "
    "builder.min_feeders or builder.expected_sources of the node",
    RejectReason.BAD_VERSION: "install the same version of hltnode on both sides",
    RejectReason.MALFORMED: "install the same version of hltnode on both sides",
    RejectReason.OVERSIZED: "announce fewer sources per connection (--sources)",
}


class HelloRefusals:
    """The refusals of one connection since its last welcome."""

    def __init__(self) -> None:
        self._reason = ""
        self._text = ""
        self._since_ns: int | None = None

    def welcomed(self) -> None:
        """The node takes this feeder."""
        self._since_ns = None

    def refused(self, now_ns: int, reason: str, text: str) -> str | None:
        """The node has refused a hello; returns what to tell the user if that cannot heal."""
        if self._since_ns is None:
            self._since_ns = now_ns
        self._reason, self._text = reason, text
        advice = _HOPELESS.get(reason)
        return None if advice is None else f"{text}: {advice}"

    def overdue(self, now_ns: int, *, takes_others: bool) -> str | None:
        """What to tell the user when there was no welcome for too long, else None.

        Args:
            takes_others: the node has welcomed another connection of this process.
        """
        if self._since_ns is None:
            return None
        waited_ns = now_ns - self._since_ns
        if takes_others and self._reason in _NO_PLACE and waited_ns > PLACE_PATIENCE_NS:
            return f"{self._text}: {_NO_PLACE_ADVICE}"
        if waited_ns > PATIENCE_NS:
            return f"{self._text}: so for {PATIENCE_NS * 1e-9:.0f} s"
        return None
