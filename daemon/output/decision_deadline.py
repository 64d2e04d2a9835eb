"""The deadline of decisions: marks the decision messages that miss it."""

from collections.abc import Sequence

from msgspec.structs import replace

from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.protocol.transport.decisions import MepDecision


class DecisionDeadline:
    """Marks late decisions; any thread.

    Args:
        ns: time in nanoseconds from the first fragment of a MEP to its decision; 0: no decision is late.
    """

    def __init__(self, ns: int = 0) -> None:
        self._ns = ns

    def mark(
        self, decisions: Sequence[MepDecision], meps: Sequence[MepRecord], now_ns: int
    ) -> tuple[Sequence[MepDecision], int]:
        """The decisions as they are sent now, and the number of late ones.

        meps: the MEPs of a batch that has at least these decisions.
        """
        late = {mep.mep for mep in meps if now_ns - mep.first_ns > self._ns} if self._ns else ()
        if not late:
            return decisions, 0
        marked = [replace(decision, late=True) if decision.mep in late else decision for decision in decisions]
        return marked, sum(decision.late for decision in marked)
