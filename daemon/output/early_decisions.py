"""Decisions that leave a node before the files and the journal (`latency.decisions_first`).

They are sent in the compute thread: each hand-over to another thread costs 0.1 to 0.5 ms on a busy node, more than
making and sending the message.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from hltnode.daemon.compute.pipeline import ComputedBatch, DecisionRows
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord
from hltnode.daemon.output.decision_deadline import DecisionDeadline
from hltnode.daemon.output.gathering import DecidedBatch, EventGatherer
from hltnode.protocol._native import DecisionWriter
from hltnode.protocol.transport.decisions import DecisionGroup, MepDecision


def would_repeat(computed: ComputedBatch) -> bool:
    """Whether another session of the node would send the same decisions on these MEPs, if it got them again.

    A decision that leaves before the journal has its MEP is made again after a kill. It must then be the same one. That
    is certain for complete MEPs that the back end has computed: their decisions depend on their fragments and on the
    TCK only. An incomplete MEP may be complete when it is sent again, and a dropped one may find room. A MEP that an
    earlier session ended on may not be computed again.
    """
    return (
        computed.error is None
        and not computed.not_processed
        and not computed.was_interrupted
        and all(map(_is_certain, computed.batch.meps))
    )


def _is_certain(mep: MepRecord) -> bool:
    return not mep.missing and not mep.error_stream and mep.dropped_by is None


class EarlyDecisions:
    """Sends the decisions of computed batches. Calls come from the compute thread.

    Args:
        send: sends decisions in order as far as the subscribers take them at once; returns how many.
        begun_below: for MEPs that are not sent again (datagrams): returns one more than the largest MEP id of a run
            whose computing is in the journal. No session uses these ids again; a decision with another id stays in the
            usual order. None: feeders send MEPs again.
        writer: writes the message of one MEP. None: messages have more than a decision, such as lists.
        send_written: sends the message that a function makes of its sequence number; False if a subscriber does not
            take it at once.
    """

    def __init__(
        self,
        gatherer: EventGatherer,
        send: Callable[[Sequence[MepDecision | DecisionGroup]], int],
        deadline: DecisionDeadline,
        *,
        begun_below: Callable[[int], int] | None = None,
        writer: DecisionWriter | None = None,
        send_written: Callable[[Callable[[int], bytes]], bool] = lambda _write: False,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._writer = writer
        self._send_written = send_written
        self._left: Batch | None = None
        """The batch whose decisions `leave_at_once` has sent last."""
        self._begun_below = begun_below
        self._gatherer = gatherer
        self._send = send
        self._deadline = deadline
        self._clock_ns = clock_ns

    def leave_at_once(self, batch: Batch, tck: int, rows: DecisionRows) -> bool:
        """Send the decision of a batch of one MEP straight from the memory of the back end; False if it was not sent.

        Nothing else is made before: each object and array costs microseconds where the caches have no code of it.
        `leave` makes the rest. Late decisions have a mark, and other batches more messages: they are left to `leave`.
        """
        writer, now_ns = self._writer, self._clock_ns()
        mep = batch.meps[0]
        if (
            writer is None
            or len(batch.meps) > 1
            or not _is_certain(mep)
            or self._deadline.is_late(mep, now_ns)
            or not self._is_noted(batch)
        ):
            return False
        write = partial(self._written, writer, batch.run, mep, tck, rows)
        if not self._send_written(write):
            return False
        batch.times.gathered_ns, batch.times.published_ns = now_ns, self._clock_ns()
        self._left = batch
        return True

    @property
    def has_writer(self) -> bool:
        """Whether messages have nothing but a decision."""
        return self._writer is not None

    def leave_directly(self, run: int, mep: int, first_event: int, n_events: int, tck: int, rows: DecisionRows) -> bool:
        """Send the decision of a complete MEP before it is built, in any thread; False if it was not sent.

        The caller knows that `leave_at_once` would send it, and calls `leave` with its batch later.
        """
        writer = self._writer
        assert writer is not None
        return self._send_written(lambda seq: writer.write(run, mep, seq, first_event, n_events, tck, *rows))

    @staticmethod
    def _written(writer: DecisionWriter, run: int, mep: MepRecord, tck: int, rows: DecisionRows, seq: int) -> bytes:
        return writer.write(run, mep.mep, seq, mep.first_event, mep.n_events, tck, *rows)

    def leave(self, computed: ComputedBatch) -> ComputedBatch | DecidedBatch:
        """Send the decisions of a batch. Those that a subscriber does not take leave in the usual order.

        A batch with decisions that another session might not repeat comes back as it is.
        """
        if self._left is computed.batch or computed.batch.direct is not None:
            self._left = None
            decided = self._gatherer.decide(computed)
            return replace(decided, n_sent=len(decided.decisions))
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
