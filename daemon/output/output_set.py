"""All socket outputs: decisions, kept events, error stream, monitoring sample.

Each output has a slow consumer policy. With `wait`, a slow consumer holds the batch and finally fills the output queue
and the slots, until the feeders have no credits.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial

import zmq

from hltnode.daemon.common.sampler import Sampler
from hltnode.daemon.common.vocabulary import (
    EventSocketKind,
    EventStream,
    MonitorContent,
    OutputName,
    SlowConsumerPolicy,
)
from hltnode.daemon.common.zmq_sockets import BindError
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.configuration.output_sections import EventSocketSection
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.output.decision_deadline import DecisionDeadline
from hltnode.daemon.output.gathering import GatheredBatch
from hltnode.daemon.output.output_sockets import DecisionPublisher, EventOutput, OutputSocket, event_message
from hltnode.daemon.output.policy_sender import PolicySender
from hltnode.daemon.output.slow_consumer_policy import Message
from hltnode.protocol.transport.decisions import DecisionGroup, MepDecision

# Shorter waits are normal for a busy consumer; they are not reported.
REPORTED_WAIT_NS = 1_000_000_000
# Sample messages queued for a slow monitor; further messages are dropped.
MONITOR_QUEUE = 16

Context = zmq.Context[zmq.Socket[bytes]]


class Outputs:
    """The sockets that publish written batches. All calls come from the thread of the event loop.

    Raises:
        BindError: an endpoint cannot be bound.
    """

    def __init__(
        self,
        context: Context,
        config: NodeConfig,
        counters: Counters,
        publisher: DecisionPublisher,
        *,
        prepare: Callable[[zmq.Socket[bytes]], None] = lambda _socket: None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._publisher = publisher
        self._prepare = prepare
        self._clock_ns = clock_ns
        self._counters = counters
        self._deadline = DecisionDeadline(config.latency.deadline_us * 1_000)
        self.events: dict[EventStream, EventOutput] = {}
        self._monitor: EventOutput | None = None
        self._content = config.monitor.content
        self._sampler = Sampler(config.monitor.fraction, config.monitor.max_rate)
        try:
            self._bind_events(context, EventStream.ACCEPTED, OutputName.EVENTS, config.events)
            self._bind_events(context, EventStream.ERROR, OutputName.ERRORS, config.errors)
            if config.monitor.endpoint is not None:
                self._monitor = EventOutput(
                    OutputName.MONITOR,
                    OutputSocket(
                        context,
                        config.monitor.endpoint,
                        EventSocketKind.PUB,
                        high_water_mark=MONITOR_QUEUE,
                        prepare=prepare,
                    ),
                    SlowConsumerPolicy.DROP_NEW,
                    counters.outputs[OutputName.MONITOR],
                    queue=MONITOR_QUEUE,
                )
        except (zmq.ZMQError, BindError):
            self.close(linger_ms=0)
            raise

    def _bind_events(
        self, context: Context, stream: EventStream, name: OutputName, section: EventSocketSection
    ) -> None:
        if section.endpoint is not None:
            socket = OutputSocket(
                context, section.endpoint, section.kind, high_water_mark=section.queue, prepare=self._prepare
            )
            self.events[stream] = EventOutput(
                name, socket, section.policy, self._counters.outputs[name], queue=section.queue
            )

    @property
    def monitor_endpoint(self) -> str | None:
        """Endpoint of the monitoring sample; None if it is not configured."""
        return None if self._monitor is None else self._monitor.endpoint

    async def publish(self, written: GatheredBatch) -> None:
        """Send the events of a batch and its decisions, unless these are sent; its MEPs may then be acknowledged."""
        run = written.computed.batch.run
        for stream, output in self.events.items():
            await output.sender.put_all(_records(written, stream), partial(event_message, stream, run))
        decisions, n_late = self._deadline.mark(written.to_send, written.computed.batch.meps, self._clock_ns())
        self._counters.late_decisions += n_late + written.n_late
        await self._publisher.publish(decisions)
        if self._monitor is not None:
            now_ns = self._clock_ns()
            if self._content is MonitorContent.DECISIONS:
                sent = decisions if written.unsent is None else written.decisions
                sampled = (each for each in sent if self._sampler.takes(now_ns))
                await self._monitor.sender.put_all(sampled, self._as_decision)
            else:
                for stream in written.events:
                    events = (each for each in _records(written, stream) if self._sampler.takes(now_ns))
                    await self._monitor.sender.put_all(events, partial(event_message, stream, run))

    def decisions_sent(self) -> None:
        """Read the subscriptions after another thread has sent decisions."""
        self._publisher.changed()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to watch the sockets for subscriptions and for consumers with room."""
        self._publisher.start(loop)
        for output in self._event_outputs():
            output.start(loop)

    def problem(self, now_ns: int) -> str | None:
        """The outputs that hold back the node, as text for `Health.output_problem`; None if there is none."""
        waiting = [
            f"{sender.name} has waited for its consumer for {(now_ns - since) / 1e9:.1f} s"
            for sender in self._senders()
            if (since := sender.waiting_since_ns) is not None and now_ns - since > REPORTED_WAIT_NS
        ]
        return "; ".join(waiting) or None

    @property
    def is_waiting(self) -> bool:
        """Whether an output currently waits for its consumer."""
        return any(sender.waiting_since_ns is not None for sender in self._senders())

    def close(self, linger_ms: int) -> None:
        """Close the sockets of events and monitoring; the publisher has its own `close`."""
        for output in self._event_outputs():
            output.close(linger_ms)

    def _as_decision(self, decision: MepDecision | DecisionGroup, _sequence: int) -> Message:
        # Samples have no place in the sequence of the decision stream: their sequence number is 0.
        return self._publisher.message(decision)

    def _event_outputs(self) -> list[EventOutput]:
        return [*self.events.values(), *([] if self._monitor is None else [self._monitor])]

    def _senders(self) -> list[PolicySender]:
        return [self._publisher.sender, *(output.sender for output in self._event_outputs())]


def _records(written: GatheredBatch, stream: EventStream) -> Iterator[memoryview]:
    for block in written.events.get(stream, ()):
        yield from block.records()
