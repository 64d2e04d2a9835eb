"""A node of the model: its link, the real event builder, back ends, and the disk.

The builder, its credits and deadlines, and the limit of gathered batches are the classes of a node. A MEP comes in two
parts, because only the first and the last fragment decide: they are the two sources of the builder here.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from hltnode.daemon.common.vocabulary import CloseReason, SlotState
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.deadlines import NEVER_NS
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    AcknowledgedBelow,
    AwaitedFeeder,
    AwaitFeeders,
    Batch,
    CloseMep,
    Drain,
    Effect,
    GrantCredit,
    MepsAcknowledged,
    Reject,
    ReturnMeps,
    SealSlot,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Stimulus,
    Tick,
)
from hltnode.daemon.farm_model.back_ends import BackEnds
from hltnode.daemon.farm_model.clock import Clock
from hltnode.daemon.farm_model.consumers import FarmOutputs, NodeOutputs
from hltnode.daemon.farm_model.measures import FarmCounts
from hltnode.daemon.farm_model.no_history import NoHistory
from hltnode.daemon.farm_model.node_numbers import FIRST, PARTS, NodeNumbers, to_ns
from hltnode.daemon.farm_model.service_times import ServiceTimes
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.node.sizing import builder_limits
from hltnode.daemon.output.output_queue import OutputQueue
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.feeder_messages import Nack

RUN = 1
_TICK = Tick()


class Feeders(Protocol):
    """What a node sends to its feeders; the calls come when the message arrives."""

    def credited(self, of: tuple[int, int, int]) -> None:
        """A session of a node grants credits for a number of MEPs."""

    def acknowledged(self, of: tuple[int, tuple[int, ...]]) -> None:
        """A node acknowledges MEPs."""

    def refused(self, of: tuple[int, int, Nack]) -> None:
        """A session of a node refuses a part of a MEP."""

    def drained(self, node: int) -> None:
        """The node has no MEP left after a drain."""


class NodeModel:
    """One node. `session` changes with each start; messages of an earlier session are lost with it."""

    def __init__(
        self,
        index: int,
        clock: Clock,
        numbers: NodeNumbers,
        times: ServiceTimes,
        feeders: Feeders,
        counts: FarmCounts,
        outputs: FarmOutputs,
    ) -> None:
        self.index = index
        self.session = 0
        self.is_up = False
        self.slowness = 1.0
        """Factor on the time of a batch."""
        self.full_disk = 0
        """Faults that stop the disk."""
        self.draining = False
        self._stops: set[int] = set()
        """Faults that stop the process."""
        self._stood_since_ns = self._stood_ns = 0
        """Start of the present stop, and time of all earlier ones: deadlines on feeders do not count it."""
        self._after_stop: list[Callable[[], None]] = []
        """What reaches the process while it stands still, in order."""
        self.accounting_closes = True
        """Whether the accounts of all earlier sessions closed."""
        self._clock, self._numbers, self._times = clock, numbers, times
        self._feeders, self._counts = feeders, counts
        self._limits = builder_limits(numbers.config)
        self._link_free_ns = 0
        self._tick_ns = NEVER_NS
        self.back_ends: BackEnds[Batch] = BackEnds(
            clock,
            numbers.back_ends,
            counts,
            service_ns=lambda batch: to_ns(times.draw(batch.n_events) * self.slowness),
            begun=lambda batch: self._handle(SlotAdvanced(batch.slot, SlotState.RUN)),
            ended=self._computed,
        )
        self._to_gather: deque[Batch] = deque()
        self._to_write: deque[tuple[int, Batch]] = deque()
        """Gathered batches, and the bytes that are kept of each."""
        self._is_writing = False
        self._farm_outputs = outputs
        self._to_deliver: deque[tuple[int, int, Batch]] = deque()
        """Times of writing, bytes and batches; the first one is being sent to the consumers."""
        self._outputs: NodeOutputs | None = None

    # Sessions

    def start(self, floor: int, revoked: Iterable[tuple[int, int]] = ()) -> None:
        """Start a session, in which every MEP below `floor` is acknowledged and the revoked ones belong to others."""
        self.session += 1
        self.is_up = True
        self.draining = False
        counters = Counters()
        pool = SlotPool(self._numbers.config.pipeline.slots, self._numbers.slots)
        self.builder = EventBuilder(pool, self._limits, counters)
        self.builder.history = NoHistory()
        self.builder.wake_lowered = self._wake
        self.output = OutputQueue(self._numbers.config.output.queue_bytes)
        if self._farm_outputs.totals:
            again = partial(self._deliver_again, self.session)
            self._outputs = NodeOutputs(self._farm_outputs, self.index, self._clock, again)
        self._tick_ns = NEVER_NS
        self._link_free_ns = self._clock.now_ns
        events = self._numbers.events_per_mep
        self._handle(StartRun(RUN, PARTS, floor, events, (), tuple(revoked)))
        self._handle(AwaitFeeders(tuple(AwaitedFeeder((part,), None) for part in PARTS)))

    def stop(self) -> None:
        """End the session: everything in memory is lost."""
        self.accounting_closes &= closes(accounting(self.builder.counters, self.builder))
        self.is_up = False
        self.session += 1
        self.back_ends.lose_all()
        self._stops.clear()
        self._after_stop.clear()
        self._to_gather.clear()
        self._to_write.clear()
        self._is_writing = False
        self._to_deliver.clear()
        if self._outputs is not None:
            self._outputs.close()

    def hold(self, fault: int) -> None:
        """The process stands still; its memory, its links and its back ends do not."""
        if not self._stops:
            self._stood_since_ns = self._clock.now_ns
        self._stops.add(fault)
        self.back_ends.hold()

    def release(self, fault: int) -> None:
        """The process continues, unless another fault stops it. One that has died since has nothing to do."""
        if fault not in self._stops:
            return
        self._stops.remove(fault)
        if not self._stops:
            self._stood_ns += self._clock.now_ns - self._stood_since_ns
            waiting, self._after_stop = self._after_stop, []
            session = self.session
            for each in waiting:
                # A node that has drained meanwhile is away, and gets nothing more.
                if self.session == session:
                    each()
            self.back_ends.release()

    def drain(self) -> None:
        """Grant no more credits, and report when no MEP is left."""
        self.draining = True
        self._begin_drain()

    def _begin_drain(self) -> None:
        if self._stops:
            self._after_stop.append(self._begin_drain)
            return
        self._handle(Drain())
        self._look_if_drained()

    def said_hello(self, floor: int, returned: list[tuple[int, int]]) -> None:
        """The feeders have all MEPs below an id acknowledged; the returned ones are assigned to this node again."""
        if self._stops:
            self._after_stop.append(partial(self.said_hello, floor, returned))
            return
        self._handle(AcknowledgedBelow(floor))
        if returned:
            self._handle(ReturnMeps(tuple(returned)))

    # Input

    def transfer(self, mep: int, parts: Iterable[int], sources_ready_ns: int, last_delay_ns: int) -> None:
        """Parts of a MEP come over the link, one MEP after the other.

        The last part arrives when the link has carried it and its sources have sent it, at `sources_ready_ns`.
        """
        now_ns, numbers = self._clock.now_ns, self._numbers
        at_ns = max(now_ns, self._link_free_ns)
        for part in parts:
            at_ns += numbers.part_ns[part]
            arrival_ns = at_ns if part == FIRST else max(at_ns, sources_ready_ns) + last_delay_ns
            self._clock.call_at(arrival_ns + numbers.control_ns, self._arrived, (self.session, mep, part))
        self._link_free_ns = at_ns

    def _arrived(self, of: tuple[int, int, int]) -> None:
        session, mep, part = of
        if session != self.session or not self.is_up:
            return
        if self._stops:
            self._after_stop.append(partial(self._arrived, of))
            return
        builder, numbers = self.builder, self._numbers
        now_ns = self._clock.now_ns - self._stood_ns
        builder.counters.fragments_received += 1
        events = numbers.events_per_mep
        place = builder.place_for(now_ns, RUN, part, mep, numbers.part_bytes[part], mep * events, events)
        if isinstance(place, RejectReason):
            self._carry_out(builder.reject(now_ns, place, RUN, part, mep))
        else:
            self._carry_out(builder.fragment_copied(now_ns, place))

    # The builder

    @property
    def _reading_ns(self) -> int:
        """The time for deadlines, which stands still with the process."""
        return self._clock.now_ns - self._stood_ns

    def _handle(self, stimulus: Stimulus) -> None:
        self._carry_out(self.builder.handle(self._clock.now_ns - self._stood_ns, stimulus))

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, CloseMep):
                record = effect.record
                self._counts.build.add(self._reading_ns - record.opened_ns)
                self._counts.incomplete += record.close_reason is not CloseReason.COMPLETE
            elif isinstance(effect, SealSlot):
                self.back_ends.submit(effect.batch)
            elif isinstance(effect, GrantCredit):
                self._send(self._feeders.credited, (self.index, self.session, effect.meps))
            elif isinstance(effect, Reject):
                self._counts.refused += 1
                nack = Nack(effect.run, effect.source, effect.mep, effect.reason, effect.resend)
                self._send(self._feeders.refused, (self.index, self.session, nack))

    def _send(self, receive: Callable[[Any], None], message: Any) -> None:
        """Messages arrive in the order in which they are sent."""
        self._clock.call_at(self._clock.now_ns + self._numbers.control_ns, receive, message)

    def _wake(self) -> None:
        wake_ns = self.builder.wake_ns
        if wake_ns < self._tick_ns:
            self._tick_ns = wake_ns
            at_ns, now_ns = wake_ns + self._stood_ns, self._clock.now_ns
            self._clock.call_at(at_ns if at_ns > now_ns else now_ns, self._tick, (self.session, wake_ns))

    def _tick(self, of: tuple[int, int]) -> None:
        # A tick that was lowered since has run earlier; one of another session must not run.
        session, wake_ns = of
        if wake_ns == self._tick_ns and session == self.session and self.is_up:
            if self._stops:
                self._after_stop.append(partial(self._tick, of))
                return
            self._tick_ns = NEVER_NS
            self._handle(_TICK)
            if self.builder.wake_ns < NEVER_NS:
                self._wake()

    # Behind the back ends

    def _computed(self, batch: Batch) -> None:
        self._handle(SlotAdvanced(batch.slot, SlotState.DONE))
        self._to_gather.append(batch)
        self._gather()

    def _gather(self) -> None:
        """Copy kept events out of the slots while the output has room for another batch."""
        while self._to_gather and self.output.has_room():
            batch = self._to_gather.popleft()
            kept = round(batch.n_events * self._numbers.written_bytes_per_event)
            self.output.put(kept)
            self._to_write.append((kept, batch))
            self._handle(SlotFreed(batch.slot))
        self.write()

    def write(self) -> None:
        """Write the next batch if the disk is free and works."""
        if self._to_write and not self._is_writing and not self.full_disk:
            self._is_writing = True
            kept, batch = self._to_write.popleft()
            written_ns = self._clock.now_ns + int(kept / self._numbers.disk)
            self._clock.call_at(written_ns, self._written, (self.session, kept, batch))

    def _written(self, of: tuple[int, int, Batch]) -> None:
        session, kept, batch = of
        if session != self.session:
            return
        if self._stops:
            self._after_stop.append(partial(self._written, of))
            return
        self._is_writing = False
        if self._outputs is None:
            self._delivered(kept, batch)
            return
        self._to_deliver.append((self._clock.now_ns, kept, batch))
        if len(self._to_deliver) == 1:
            self._deliver(self._outputs)
        # The disk does not wait for the consumers.
        self.write()

    def _deliver(self, outputs: NodeOutputs) -> None:
        """Send the first written batch to the consumers, and then the next ones until one must wait."""
        while self._to_deliver:
            batch = self._to_deliver[0][2]
            outputs.begin(len(batch.meps), batch.n_events)
            if not self._is_delivered(outputs):
                return

    def _is_delivered(self, outputs: NodeOutputs) -> bool:
        if not outputs.advance():
            return False
        written_ns, kept, batch = self._to_deliver.popleft()
        self._counts.delivery.add(self._clock.now_ns - written_ns)
        self._delivered(kept, batch)
        return True

    def _deliver_again(self, session: int) -> None:
        """A consumer may have room for the message that waits, or its time is over."""
        if session != self.session or self._outputs is None:
            return
        if self._stops:
            self._after_stop.append(partial(self._deliver_again, session))
        elif self._is_delivered(self._outputs):
            self._deliver(self._outputs)

    def _delivered(self, kept: int, batch: Batch) -> None:
        """The files and all consumers have a batch: its MEPs are acknowledged."""
        meps = tuple([record.mep for record in batch.meps])
        self._handle(MepsAcknowledged(meps))
        self._send(self._feeders.acknowledged, (self.index, meps))
        self.output.take(kept)
        self._gather()
        self._look_if_drained()

    def _look_if_drained(self) -> None:
        if self.draining and self.builder.is_idle:
            self.draining = False
            self._feeders.drained(self.index)
