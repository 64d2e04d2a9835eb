"""Decisions that leave a node before the files and the journal (`latency.decisions_first`).

They are sent in the compute thread: each hand-over to another thread costs 0.1 to 0.5 ms on a busy node, more than
making and sending the message.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.event_building.stimuli_and_effects import Batch
from hltnode.daemon.output.decision_deadline import DecisionDeadline
from hltnode.daemon.output.gathering import DecidedBatch, EventGatherer
from hltnode.protocol.transport.decisions import DecisionGroup, MepDecision


def would_repeat(computed: ComputedBatch) -> bool:
    """Whether another session of the node would send the same decisions on these MEPs, if it got them again.

    A decision that leaves before the journal has its MEP is made again after a kill. It must then be the same one. That
    is certain for complete MEPs that the back end computed with all others of their batch: their decisions depend on
    their fragments and on the TCK only. An incomplete MEP may be complete when it is sent again, and a
    dropped one may find room.
    """
    meps = computed.batch.meps
    return (
        computed.error is None
        and not computed.not_processed
        and len(computed.timings) == 1
        and not any(mep.missing or mep.error_stream or mep.dropped_by is not None for mep in meps)
    )


class EarlyDecisions:
    """Sends the decisions of computed batches. Calls come from the compute thread.

    Args:
        send: sends decisions in order as far as the subscribers take them at once; returns how many.
        begun_below: for MEPs that are not sent again (datagrams): returns one more than the largest MEP id of a run
            whose computing is in the journal. No session uses these ids again; a decision with another id stays in the
            usual order. None: feeders send MEPs again.
    """

    def __init__(
        self,
        gatherer: EventGatherer,
        send: Callable[[Sequence[MepDecision | DecisionGroup]], int],
        deadline: DecisionDeadline,
        *,
        begun_below: Callable[[int], int] | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._begun_below = begun_below
        self._gatherer = gatherer
        self._send = send
        self._deadline = deadline
        self._clock_ns = clock_ns

    def leave(self, computed: ComputedBatch) -> ComputedBatch | DecidedBatch:
        """Send the decisions of a batch. Those that a subscriber does not take leave in the usual order.

        A batch with decisions that another session might not repeat comes back as it is.
        """
        if not would_repeat(computed) or not self._is_noted(computed.batch):
            return computed
        decided = self._gatherer.decide(computed)
        times = computed.batch.times
        times.gathered_ns = self._clock_ns()
        decisions, n_late = self._deadline.mark(decided.decisions, computed.batch.meps, times.gathered_ns)
        n_sent = self._send(decisions)
        times.published_ns = self._clock_ns()
        n_late_sent = n_late if n_sent == len(decisions) else sum(each.late for each in decisions[:n_sent])
        return replace(decided, decisions=decisions, n_sent=n_sent, n_late=n_late_sent)

    def _is_noted(self, batch: Batch) -> bool:
        """Whether no later session can give the ids of these MEPs to other events."""
        return self._begun_below is None or max(mep.mep for mep in batch.meps) < self._begun_below(batch.run)
