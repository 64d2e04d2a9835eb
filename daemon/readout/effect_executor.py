"""Carries out the effects of the event builder: batches to the pipeline, credits and refusals to the feeders."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import MepStage
from hltnode.daemon.event_building.stimuli_and_effects import (
    Batch,
    BatchTimes,
    CloseMep,
    DirectTimes,
    Effect,
    GrantCredit,
    MepRecord,
    Reject,
    SealSlot,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.acknowledgements import Acknowledgements
from hltnode.daemon.readout.feeder_registry import FeederRegistry
from hltnode.daemon.readout.tap_socket import TapOfMeps
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import Ack, Credit, Missed, Nack

LOG_INTERVAL_NS = 10_000_000_000
# A refusal that asks for nothing is repeated after this time at the earliest: a feeder sends no such fragment again, so
# more copies come from a peer with its token.
SAME_REFUSAL_NS = 25_000_000
# Most refusals that are remembered for it.
MOST_ANSWERED = 4096
# Most source ids in one log line.
SHOWN_SOURCES = 32

log = get_logger("effect_executor")


class FeederConnections(Protocol):
    """The part of the control socket that the readout uses. Tests have their own."""

    def send(self, identities: Iterable[bytes], message: ControlMessage, /) -> None:
        """Send to each connected peer that reads."""

    def reaches(self, identity: bytes, message: ControlMessage, /) -> bool:
        """Send to one peer; False if it is not connected."""

    def delivers(self, identity: bytes, message: ControlMessage, /) -> bool:
        """Send to one peer; False if the message was dropped: the peer is not connected, or does not read."""


class EffectExecutor:
    """Carries out effects. It needs only their content and the registry of feeders.

    Args:
        submit: submits a batch to the pipeline.
        clock_ns: monotonic time, for the times of closed MEPs and sealed slots.
        true_time_of: converts a time of the builder to one of `clock_ns`.
        taps: are told of each closed MEP.
    """

    def __init__(
        self,
        registry: FeederRegistry,
        acknowledgements: Acknowledgements,
        connections: FeederConnections,
        counters: Counters,
        submit: Callable[[Batch], None],
        clock_ns: Callable[[], int],
        taps: Sequence[TapOfMeps] = (),
        true_time_of: Callable[[int], int] = lambda ns: ns,
    ) -> None:
        self._registry = registry
        self._acknowledgements = acknowledgements
        self._connections = connections
        self._counters = counters
        self._submit = submit
        self._clock_ns = clock_ns
        self._taps = taps
        self._true_time_of = true_time_of
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._answered: dict[tuple[bytes, int, RejectReason, int, int], int] = {}
        """Times of the last refusals, by feeder, run, reason, source and MEP."""
        self.waited_ns = 0
        """Time from the first datagram of a MEP until its fragments are handed over; 0 for other input."""
        self.direct: DirectTimes | None = None
        """The MEP whose fragments are handed over was decided directly."""

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Carry out effects in order, except `Place`, which the receiver has carried out before."""
        closed: list[MepRecord] = []
        for effect in effects:
            if isinstance(effect, Reject):
                self._reject(effect)
            elif isinstance(effect, CloseMep):
                record = effect.record
                record.closed_ns = self._clock_ns() if self.direct is None else self.direct.joined_ns
                record.first_ns = self._true_time_of(record.opened_ns) - self.waited_ns
                closed.append(record)
                if self._taps and self._registry.current is not None:
                    for tap in self._taps:
                        tap.mep_closed(self._registry.current.run, record)
                if effect.record.missing:
                    self._incomplete(effect.record)
            elif isinstance(effect, SealSlot):
                self._submit(self._sealed(effect.batch))
            elif isinstance(effect, GrantCredit):
                self._connections.send(self._registry.identities(effect.run), Credit(effect.run, effect.meps))
        # A batch that was submitted does not wait for the metrics.
        for record in closed:
            self._counters.mep_stages[MepStage.BUILD].observe((record.closed_ns - record.first_ns) * 1e-9)

    def _sealed(self, batch: Batch) -> Batch:
        if self.direct is None:
            batch.times.sealed_ns = self._clock_ns()
            return batch
        joined_ns, computed_ns, sent_ns = self.direct
        times = BatchTimes(joined_ns, joined_ns, computed_ns, computed_ns, published_ns=sent_ns)
        return replace(batch, times=times, direct=self.direct)

    def _reject(self, reject: Reject) -> None:
        owner = self._registry.owner_of(reject.run, reject.source)
        if owner is None:
            return
        # The run of a known feeder is kept: its fragments are accepted when it is the current run again.
        resend = reject.resend or reject.reason is RejectReason.FOREIGN_RUN
        if not resend and not self._is_answer_due(owner, reject):
            return
        # Without `resend` a damaged copy of a fragment that has arrived: its feeder must not count that one as lost.
        if resend or reject.reason is not RejectReason.BAD_CRC:
            self._counters.nacks_sent += 1
            nack = Nack(reject.run, reject.source, reject.mep, reject.reason, resend)
            if not self._connections.delivers(owner, nack):
                # Without it the feeder would wait for the fragment to arrive, and the node for the fragment.
                self._registry.keep_unsent(nack)
        if reject.mep in self._acknowledgements.done(reject.run):
            # The feeder has missed the acknowledgement, or it would not have sent this fragment.
            self._connections.send((owner,), Ack(reject.run, ((reject.mep, reject.mep),)))

    def _is_answer_due(self, owner: bytes, reject: Reject) -> bool:
        """Whether the feeder was not told the same refusal just now."""
        now_ns = self._clock_ns()
        key = (owner, reject.run, reject.reason, reject.source, reject.mep)
        last_ns = self._answered.get(key)
        if last_ns is not None and now_ns - last_ns < SAME_REFUSAL_NS:
            return False
        if len(self._answered) >= MOST_ANSWERED:
            self._answered.clear()
        self._answered[key] = now_ns
        return True

    def _incomplete(self, mep: MepRecord) -> None:
        """Tell the feeders before the acknowledgement, after which they forget their fragments."""
        run = self._registry.current
        if run is not None:
            for identity, source in run.closed_without(mep.mep, mep.missing):
                self._connections.send((identity,), Missed(run.run, source, ((mep.mep, mep.mep),)))
        left_out = self._limit.due(("incomplete", mep.close_reason))
        if left_out is not None:
            log.warning(
                "mep_incomplete",
                mep=mep.mep,
                reason=mep.close_reason,
                missing=list(mep.missing[:SHOWN_SOURCES]),
                n_missing=len(mep.missing),
                left_out=left_out,
            )
