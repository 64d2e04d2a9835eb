"""The deadline of decisions: marks the decision messages that miss it."""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.protocol.transport.decisions import DecisionGroup, MepDecision

Decision = MepDecision | DecisionGroup


class DecisionDeadline:
    """Marks late decisions; any thread.

    Args:
        ns: time in nanoseconds from the first fragment of a MEP to its decision; 0: no decision is late.
    """

    def __init__(self, ns: int = 0) -> None:
        self._ns = ns

    def is_late(self, mep: MepRecord, now_ns: int) -> bool:
        """Whether a decision that is sent now is late."""
        return self._ns > 0 and now_ns - mep.first_ns > self._ns

    def mark(
        self, decisions: Sequence[Decision], meps: Sequence[MepRecord], now_ns: int
    ) -> tuple[Sequence[Decision], int]:
        """The decisions as they are sent now, and the number of late ones.

        meps: the MEPs of a batch that has at least these decisions. A group with a late one is sent MEP by MEP.
        """
        late = {mep.mep for mep in meps if self.is_late(mep, now_ns)}
        if not late:
            return decisions, 0
        marked = [part for decision in decisions for part in _marked(decision, late)]
        return marked, sum(decision.late for decision in marked)


def _marked(decision: Decision, late: Collection[int]) -> list[Decision]:
    parts = decision.split() if isinstance(decision, DecisionGroup) else [decision]
    if not any(part.mep in late for part in parts):
        return [decision]
    return [replace(part, late=True) if part.mep in late else part for part in parts]
