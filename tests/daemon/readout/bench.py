"""A node's readout without sockets and threads, with a clock that the test sets."""

from typing import Any

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import Batch, BuilderLimits, FragmentArrived, SlotAdvanced
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.output.requests import RevokeEvents
from hltnode.daemon.readout.acknowledgements import Acknowledgements, Ranges
from hltnode.daemon.readout.builder_control import BuilderControl
from hltnode.daemon.readout.effect_executor import EffectExecutor
from hltnode.daemon.readout.feeder_protocol import FeederProtocol
from hltnode.daemon.readout.feeder_registry import FeederRegistry
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import Ack, EndOfRun, Error, Goodbye, Hello, Nack, Revoked
from hltnode.protocol.transport.run_control_messages import RunState
from tests.daemon.readout.connections import RecordedConnections

RUN = 7
CHAIN = "toy"
EVENTS = 10
MS = 1_000_000
SECOND = 1000 * MS


class Bench:
    """Feeder a sends source 1, feeder b source 2, and so on; the identity of a connection is the name of the feeder.

    Args:
        feeders: how many feeders a run needs.
        journal: acknowledgements of earlier sessions of the node.
        of_other_tck: runs of it that another trigger configuration decides on, with its key.
    """

    def __init__(
        self,
        *,
        feeders: int = 1,
        journal: dict[int, Ranges] | None = None,
        of_other_tck: dict[int, int] | None = None,
        inputs: dict[int, str] | None = None,
        run: int = 0,
    ) -> None:
        self.now = 0
        self.state = RunState.RUNNING
        self.counters = Counters()
        limits = SlotLimits(input_bytes=8192, events=4 * EVENTS, meps=64, fragments=64, mep_bytes=1024)
        times = BuilderLimits(
            mep_timeout_ns=100 * MS,
            feeder_timeout_ns=1000 * MS,
            overtaken_ns=30 * MS,
            evict_ns=10 * MS,
            flush_deadline_ns=20 * MS,
            closed_ring=64,
        )
        self.builder = EventBuilder(SlotPool(3, limits), times, self.counters)
        self.connections = RecordedConnections()
        self.batches: list[Batch] = []
        self.written: list[tuple[int, int]] = []
        """(run, MEP) of each MEP in a finished batch, as the files would have it."""
        self.summaries: list[tuple[dict[str, Any], bool]] = []
        self.revoked: list[RevokeEvents] = []
        self.confirmed: list[tuple[int, int]] = []
        self.supervised: list[int] = []
        self.without_conditions: set[int] = set()
        self.inputs: list[tuple[int, str]] = []
        self.registry = FeederRegistry(
            node="n",
            chain=CHAIN,
            run=run,
            min_feeders=feeders,
            max_feeders=feeders,
            sources=None,
            max_events_per_mep=EVENTS,
            admit=self.admit,
        )
        self.acknowledgements = Acknowledgements()
        executor = EffectExecutor(
            self.registry, self.acknowledgements, self.connections, self.counters, self.batches.append, lambda: self.now
        )
        self.carry_out = executor.carry_out
        self.control = BuilderControl(
            self.builder,
            self.registry,
            self.acknowledgements,
            self.connections,
            self.counters,
            executor.carry_out,
            lambda summary, over: self.summaries.append((summary, over)),
            lambda run, below: self.confirmed.append((run, below)),
            node="n",
            session="s",
            clock_ns=lambda: self.now,
        )
        self.protocol = FeederProtocol(
            self.control,
            self.connections,
            self.counters,
            lambda: self.state,
            self.revoked.append,
            self.supervised.append,
            lambda run, name: self.inputs.append((run, name)),
            node="n",
            session="s",
            max_fragment_bytes=1000,
            clock_ns=lambda: self.now,
        )
        self.control.remember(journal or {}, of_other_tck or {}, inputs or {})

    def admit(self, run: int) -> None:
        """Raises ValueError for a run without conditions."""
        if run in self.without_conditions:
            raise ValueError(f"run {run} has no conditions")

    @property
    def ends(self) -> list[tuple[int, str, bool]]:
        """Run, how it ended, and whether it is over, of each summary."""
        return [(summary["run"], str(summary["ended"]), over) for summary, over in self.summaries]

    def token(self, name: str = "a", run: int = RUN) -> int:
        """The token of a feeder."""
        feeders = self.registry.find(run)
        feeder = None if feeders is None else feeders.find(name)
        return 0 if feeder is None else feeder.token

    def arrive(self, identity: bytes, message: ControlMessage) -> list[ControlMessage]:
        """Have a message arrive; returns the answers to its sender."""
        self.connections.sent.clear()
        self.protocol.message_arrived(identity, message)
        return self.connections.take(identity)

    def hello(
        self,
        name: str = "a",
        *,
        first_mep: int = 0,
        run: int = RUN,
        session: str = "f1",
        identity: bytes | None = None,
        supervises: bool = False,
        input_name: str = "",
    ) -> list[ControlMessage]:
        """A feeder says hello; returns the answers."""
        source = ord(name[0]) - ord("a") + 1
        message = Hello(name, session, run, (source,), first_mep, EVENTS, 1000, supervises, input=input_name)
        return self.arrive(identity or name.encode(), message)

    def end(self, name: str = "a", *, last_mep: int | None, run: int = RUN, identity: bytes | None = None) -> None:
        """A feeder has sent everything."""
        self.arrive(identity or name.encode(), EndOfRun(run, last_mep))

    def leave(self, name: str = "a", *, identity: bytes | None = None) -> None:
        """A feeder says goodbye."""
        self.arrive(identity or name.encode(), Goodbye("feeder ends"))

    def confirm_and_leave(self, name: str = "a", *, last_mep: int, run: int = RUN, session: str = "f1") -> None:
        """Send the last messages of a feeder after all its MEPs are acknowledged."""
        self.end(name, last_mep=last_mep, run=run)
        self.hello(name, first_mep=last_mep + 1, run=run, session=session)
        self.leave(name)

    def revoke(self, name: str = "a", *meps: tuple[int, int], run: int = RUN) -> list[ControlMessage]:
        """A feeder revokes ranges of MEPs; returns the answers."""
        return self.arrive(name.encode(), Revoked(run, meps))

    def send_mep(self, mep: int, *names: str, run: int = RUN) -> list[ControlMessage]:
        """Have fragments of some feeders arrive; returns the messages that are sent meanwhile."""
        self.connections.sent.clear()
        for name in names or ("a",):
            self.counters.fragments_received += 1
            source = ord(name[0]) - ord("a") + 1
            fragment = FragmentArrived(run, source, mep, 100, mep * EVENTS, EVENTS)
            self.carry_out(self.builder.handle(self.now, fragment))
        return self.connections.take()

    def pass_time(self, ns: int) -> None:
        """Let time pass at once."""
        self.now += ns
        self.control.tick(self.now)

    def finish_batches(self) -> None:
        """Compute and write the sealed batches."""
        batches = self.batches.copy()
        self.batches.clear()
        for batch in batches:
            self.control.slot_advanced(SlotAdvanced(batch.slot, SlotState.RUN))
            self.control.slot_advanced(SlotAdvanced(batch.slot, SlotState.DONE))
            self.written += [(batch.run, mep.mep) for mep in batch.meps]
            self.control.slot_freed(batch)
            self.control.batch_done(batch)

    def work(self) -> None:
        """Let the open MEPs be closed, computed and acknowledged."""
        for _ in range(3):
            self.pass_time(100 * MS)
            self.finish_batches()


def acked(messages: list[ControlMessage]) -> Ranges:
    """All ranges of the acknowledgements among some messages."""
    return tuple(span for message in messages if isinstance(message, Ack) for span in message.meps)


def errors(messages: list[ControlMessage]) -> list[str]:
    """Reasons of the errors among some messages."""
    return [message.reason for message in messages if isinstance(message, Error)]


def nacks(messages: list[ControlMessage]) -> list[Nack]:
    """The refusals of fragments among some messages."""
    return [message for message in messages if isinstance(message, Nack)]
