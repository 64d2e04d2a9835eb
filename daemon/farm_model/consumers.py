"""Consumers of decisions, kept events and the monitoring sample, and the outputs of a node with its real policies.

A consumer is a calendar: it takes one message after the other from the queues of all nodes, in the order in which they
were sent. So the time at which it takes a message is known when the message is sent, and needs no event of the clock.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from hltnode.daemon.common.sampler import Sampler
from hltnode.daemon.common.vocabulary import DropReason, EventSocketKind, MonitorContent, SlowConsumerPolicy
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.farm_model.clock import Clock
from hltnode.daemon.farm_model.description import ConsumerOutput, ConsumerSection, FarmDescription
from hltnode.daemon.farm_model.node_numbers import NS, policy_of, to_ns
from hltnode.daemon.monitoring.counters import OutputCounters
from hltnode.daemon.output.output_set import MONITOR_QUEUE
from hltnode.daemon.output.slow_consumer_policy import Message, SendPolicy

DECISION_BYTES_OF_EVENT = 4
"""Bytes of an event in a decision message, without its lines and lists."""
ORDER = (ConsumerOutput.EVENTS, ConsumerOutput.DECISIONS, ConsumerOutput.MONITORING)
"""The order in which a node sends a batch."""


class Consumer:
    """A program that reads one output of all nodes. queue: most messages that wait for it at one node."""

    def __init__(self, section: ConsumerSection, queue: int, message_bytes: float, n_nodes: int) -> None:
        seconds = max(1.0 / section.messages_per_second, message_bytes / section.bytes_per_second)
        self._message_ns = max(1, int(seconds * NS))
        self._pause_ns = to_ns(section.pause_seconds)
        self._pause_begin_ns = to_ns(section.pause_at_seconds)
        self._free_ns = 0
        self._queue = queue
        self._taken_ns: list[deque[int]] = [deque() for _ in range(n_nodes)]
        """The times at which the messages in the queue of each node are taken."""
        self.received = 0
        """Messages that nodes sent to it."""
        self.lost = 0
        """Messages in the queues of nodes that ended."""

    def has_room(self, node: int, now_ns: int) -> bool:
        """Whether the queue of a node has room for another message."""
        waiting = self._taken_ns[node]
        while waiting and waiting[0] <= now_ns:
            waiting.popleft()
        return len(waiting) < self._queue

    def room_ns(self, node: int) -> int:
        """The time at which the next message of a node is taken; one must wait."""
        return self._taken_ns[node][0]

    def put(self, node: int, now_ns: int) -> None:
        """Send a message, for which there is room."""
        begin_ns = max(now_ns, self._free_ns)
        end_ns = begin_ns + self._message_ns
        if self._pause_ns and end_ns > self._pause_begin_ns:
            pause_end_ns = self._pause_begin_ns + self._pause_ns
            if begin_ns < pause_end_ns:
                # What is left of the message when the pause begins follows behind it.
                end_ns = pause_end_ns + end_ns - max(begin_ns, self._pause_begin_ns)
        self._free_ns = end_ns
        self._taken_ns[node].append(end_ns)
        self.received += 1

    def forget(self, node: int, now_ns: int) -> None:
        """A node ends: the messages in its queue are lost. The consumer keeps its calendar."""
        self.has_room(node, now_ns)
        self.lost += len(self._taken_ns[node])
        self._taken_ns[node].clear()


class OutputTotals:
    """Messages of one output of all nodes. `offered = sent + dropped + abandoned`, when all nodes have ended.

    offered: messages of written batches; abandoned: messages that waited for a consumer when their node ended.
    """

    def __init__(self, output: ConsumerOutput, policy: SlowConsumerPolicy, consumers: Sequence[Consumer]) -> None:
        self.output, self.policy, self.consumers = output, policy, consumers
        self.is_shared = output is ConsumerOutput.EVENTS
        """Whether each message goes to one of the consumers (push), not to all of them."""
        self.offered = self.sent = self.dropped = self.blocked = self.abandoned = 0

    def broken(self) -> Iterator[str]:
        """The identities that do not hold."""
        if self.offered != self.sent + self.dropped + self.abandoned:
            yield (
                f"{self.output}: {self.offered} messages, {self.sent} sent, {self.dropped} dropped, "
                f"{self.abandoned} abandoned"
            )
        received = [consumer.received for consumer in self.consumers]
        if {sum(received)} != {self.sent} if self.is_shared else set(received) != {self.sent}:
            yield f"{self.output}: {self.sent} messages sent, {received} received"


class _NodeOutput:
    """One output of one session of a node."""

    def __init__(self, totals: OutputTotals, node: int, clock: Clock, queue: int, drop_after_ns: int) -> None:
        self.totals = totals
        self._node, self._clock = node, clock
        self._turn = 0
        self._offered = 0
        self.pump_ns = -1
        """Time of the last planned `pump`."""
        self._counters = OutputCounters()
        self.policy = SendPolicy(
            totals.policy,
            self._try_send,
            self._counters,
            drop_after_ns=drop_after_ns,
            queue=queue,
            clock_ns=lambda: clock.now_ns,
        )

    def steps(self, n: int) -> Iterator[int | None]:
        """Send messages; yields the longest wait in ns, None for any."""
        return self.policy.steps(range(n), self._message)

    def room_ns(self) -> int | None:
        """The time at which a consumer that has no room gets room; None if all have it."""
        now_ns = self._clock.now_ns
        full = [each.room_ns(self._node) for each in self.totals.consumers if not each.has_room(self._node, now_ns)]
        if not full or (self.totals.is_shared and len(full) < len(self.totals.consumers)):
            return None
        return min(full) if self.totals.is_shared else max(full)

    def close(self, *, waits: bool) -> None:
        """The session ends. waits: a message waits for a consumer."""
        totals, counters = self.totals, self._counters
        self.policy.close()
        dropped = counters.dropped[DropReason.SLOW_SUBSCRIBER]
        totals.offered += self._offered
        totals.sent += counters.sent
        totals.dropped += dropped
        totals.blocked += counters.blocked
        totals.abandoned += waits

    def _message(self, _item: object, _sequence: int) -> Message:
        self._offered += 1
        return ()

    def _try_send(self, _message: Message) -> bool:
        consumers, node, now_ns = self.totals.consumers, self._node, self._clock.now_ns
        if self.totals.is_shared:
            for i in range(len(consumers)):
                place = (self._turn + i) % len(consumers)
                if consumers[place].has_room(node, now_ns):
                    consumers[place].put(node, now_ns)
                    self._turn = place + 1
                    return True
            return False
        if not all(consumer.has_room(node, now_ns) for consumer in consumers):
            return False
        for consumer in consumers:
            consumer.put(node, now_ns)
        return True


class NodeOutputs:
    """The outputs of one session of a node that have consumers.

    Args:
        again: continues the batch that waits, when a consumer may have room.
    """

    def __init__(self, farm: "FarmOutputs", node: int, clock: Clock, again: Callable[[], None]) -> None:
        config = farm.config
        self._farm, self._node, self._clock = farm, node, clock
        self._again = again
        self._sampler = Sampler(config.monitor.fraction, config.monitor.max_rate)
        self._rest = 0.0
        self._outputs = {
            name: _NodeOutput(totals, node, clock, *farm.limits_of(name)) for name, totals in farm.totals.items()
        }
        self._waiting: Iterator[tuple[_NodeOutput, int | None]] | None = None
        self._held_by: _NodeOutput | None = None

    def begin(self, meps: int, events: int) -> None:
        """Begin to send a batch."""
        self._waiting = self._steps(meps, events)

    def advance(self) -> bool:
        """Send on; False if a message must wait: then `again` is called later."""
        assert self._waiting is not None
        now_ns = self._clock.now_ns
        for output, wait_ns in self._waiting:
            self._held_by = output
            room_ns = output.room_ns()
            due_ns = [each for each in (room_ns, None if wait_ns is None else now_ns + wait_ns) if each is not None]
            self._clock.call_at(min(due_ns), lambda _: self._again())
            return False
        self._waiting = self._held_by = None
        self._plan_pump()
        return True

    def close(self) -> None:
        """The session ends: its queues are lost."""
        for output in self._outputs.values():
            output.close(waits=output is self._held_by)
            for consumer in output.totals.consumers:
                consumer.forget(self._node, self._clock.now_ns)
        self._outputs = {}

    def _steps(self, meps: int, events: int) -> Iterator[tuple[_NodeOutput, int | None]]:
        farm = self._farm
        self._rest += events * farm.accepted
        kept = int(self._rest)
        self._rest -= kept
        messages = {
            ConsumerOutput.EVENTS: kept,
            ConsumerOutput.DECISIONS: -(-meps // farm.config.decisions.meps_per_message),
        }
        for name in ORDER:
            output = self._outputs.get(name)
            if output is None:
                continue
            if name is ConsumerOutput.MONITORING:
                of = ConsumerOutput.DECISIONS
                if farm.config.monitor.content is not MonitorContent.DECISIONS:
                    of = ConsumerOutput.EVENTS
                n = sum(self._sampler.takes(self._clock.now_ns) for _ in range(messages[of]))
            else:
                n = messages[name]
            for wait_ns in output.steps(n):
                yield output, wait_ns

    def _plan_pump(self) -> None:
        """With drop_old, messages wait in the node: send them when a consumer has room."""
        for output in self._outputs.values():
            room_ns = output.room_ns()
            if output.totals.policy is SlowConsumerPolicy.DROP_OLD and room_ns is not None and room_ns > output.pump_ns:
                output.pump_ns = room_ns
                self._clock.call_at(room_ns, self._pump, output)

    def _pump(self, output: _NodeOutput) -> None:
        if self._outputs:
            output.policy.pump()
            self._plan_pump()


class FarmOutputs:
    """The consumers of a farm, and the sums over its nodes."""

    def __init__(self, description: FarmDescription) -> None:
        self.config: NodeConfig = description.node_config()
        self.accepted = description.nodes.accepted
        readout = description.readout
        decision_bytes = float(DECISION_BYTES_OF_EVENT * readout.events_per_mep)
        content = self.config.monitor.content
        size = {
            ConsumerOutput.EVENTS: readout.event_bytes,
            ConsumerOutput.DECISIONS: decision_bytes * self.config.decisions.meps_per_message,
            ConsumerOutput.MONITORING: decision_bytes if content is MonitorContent.DECISIONS else readout.event_bytes,
        }
        self.totals: dict[ConsumerOutput, OutputTotals] = {}
        for name in ORDER:
            queue, _ = self.limits_of(name)
            consumers = [
                Consumer(section, queue, size[name], description.nodes.count)
                for section in description.consumers
                if section.output is name
            ]
            if consumers:
                totals = OutputTotals(name, policy_of(self.config, name), consumers)
                totals.is_shared &= self.config.events.kind is EventSocketKind.PUSH
                self.totals[name] = totals

    def limits_of(self, name: ConsumerOutput) -> tuple[int, int]:
        """Messages queued for a consumer, and the longest wait in ns before messages are dropped."""
        config = self.config
        if name is ConsumerOutput.DECISIONS:
            return config.decisions.queue, config.decisions.drop_after_ms * 1_000_000
        return (config.events.queue if name is ConsumerOutput.EVENTS else MONITOR_QUEUE), 0
