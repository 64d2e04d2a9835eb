"""The feeders of a run as the node knows them (no I/O, no clock): which hellos have come, for which run and sources."""

from dataclasses import dataclass

from hltnode.daemon.common.vocabulary import HelloRefusal
from hltnode.daemon.event_building.stimuli_and_effects import AwaitedFeeder
from hltnode.protocol.transport.feeder_messages import EndOfRun, Hello

# Feeders repeat their hello every second; one that has missed five is taken as gone until its next message.
SILENT_NS = 5_000_000_000


class HelloRefusedError(ValueError):
    """A hello that does not fit the run; `reason` goes into the Error message."""

    def __init__(self, reason: HelloRefusal, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(slots=True)
class Feeder:
    """One feeder process: its last hello, its address on the control socket, and whether it has ended its run."""

    identity: bytes
    hello: Hello
    last_message_ns: int
    ended: bool = False
    last_mep: int | None = None
    gone: bool = False

    def is_silent(self, now_ns: int) -> bool:
        """True if it said goodbye or has sent no message for long."""
        return self.gone or now_ns - self.last_message_ns > SILENT_NS

    def describe(self, now_ns: int) -> dict[str, object]:
        """The feeder for /status."""
        return {
            "name": self.hello.feeder,
            "sources": len(self.hello.sources),
            "connected": not self.is_silent(now_ns),
            "ended": self.ended,
            "last_mep": self.last_mep,
        }


@dataclass(frozen=True, slots=True)
class RunStart:
    """What the builder needs to start the run."""

    run: int
    sources: tuple[int, ...]
    first_mep: int
    events_per_mep: int


class FeederRegistry:
    """Collects hellos until a run can start, then keeps track of the feeders until it ends.

    Args:
        run: the run to take, 0 for the run of the first hello.
        feeders: how many hellos are needed before the run starts.
        sources: the expected sources, None for the union of what the feeders announce.
        max_events_per_mep: the most events that one MEP may have.
    """

    def __init__(self, *, run: int, feeders: int, sources: tuple[int, ...] | None, max_events_per_mep: int) -> None:
        self._configured_run = run
        self._expected = feeders
        self._configured_sources = sources
        self._max_events_per_mep = max_events_per_mep
        self._feeders: dict[str, Feeder] = {}
        self._owner: dict[int, Feeder] = {}
        self._by_identity: dict[bytes, Feeder] = {}
        self.run: int | None = run or None
        self.started = False

    def take_run(self, run: int) -> None:
        """Take this run from now on and no other one, 0 for that of the first hello; only between runs."""
        self._configured_run = run
        self.finish_run()

    def rival(self, now_ns: int, hello: Hello) -> Feeder | None:
        """The feeder of this name in another process whose last message is recent: it runs, or has just crashed."""
        known = self._feeders.get(hello.feeder)
        if known is None or known.hello.session == hello.session or known.is_silent(now_ns):
            return None
        return known

    def hello(self, now_ns: int, identity: bytes, hello: Hello) -> RunStart | None:
        """Note a hello, new or repeated; the start of the run if this one was still missing.

        A new session takes the place of an old one of the same name; see `rival`. Raises HelloRefusedError for a hello
        that cannot be part of the run.
        """
        self._check(now_ns, hello)
        known = self._feeders.get(hello.feeder)
        if known is not None and known.hello.session == hello.session:
            self._by_identity.pop(known.identity, None)
            known.identity, known.hello, known.last_message_ns, known.gone = identity, hello, now_ns, False
            self._by_identity[identity] = known
            return None
        if known is not None:
            self._forget(known)
        feeder = Feeder(identity, hello, now_ns)
        self._feeders[hello.feeder] = feeder
        self._by_identity[identity] = feeder
        self.run = hello.run
        for source in hello.sources:
            self._owner[source] = feeder
        if self.started or len(self._feeders) < self._expected:
            return None
        self.started = True
        hellos = [feeder.hello for feeder in self._feeders.values()]
        union = tuple(sorted({source for hello in hellos for source in hello.sources}))
        return RunStart(
            run=self.run,
            sources=self._configured_sources or union,
            first_mep=min(hello.first_mep for hello in hellos),
            events_per_mep=max(hello.events_per_mep for hello in hellos),
        )

    def _check(self, now_ns: int, hello: Hello) -> None:
        if not hello.sources:
            raise HelloRefusedError(HelloRefusal.NO_SOURCES, f"feeder {hello.feeder} announces no sources")
        if not 0 < hello.events_per_mep <= self._max_events_per_mep:
            raise HelloRefusedError(
                HelloRefusal.EVENTS_PER_MEP,
                f"{hello.events_per_mep} events per MEP, 1 to {self._max_events_per_mep} expected",
            )
        if self._configured_run and hello.run != self._configured_run:
            raise HelloRefusedError(
                HelloRefusal.FOREIGN_RUN, f"this node takes run {self._configured_run}, not {hello.run}"
            )
        if self.run is not None and hello.run != self.run and self._feeders:
            raise HelloRefusedError(HelloRefusal.FOREIGN_RUN, f"this node takes run {self.run}, not {hello.run}")
        if hello.feeder not in self._feeders and len(self._feeders) >= self._expected:
            silent = next((feeder for feeder in self._feeders.values() if feeder.is_silent(now_ns)), None)
            if silent is None:
                raise HelloRefusedError(HelloRefusal.TOO_MANY_FEEDERS, f"all of {self._expected} feeders are there")
            self._forget(silent)
        for source in hello.sources:
            owner = self._owner.get(source)
            if owner is not None and owner.hello.feeder != hello.feeder and not owner.is_silent(now_ns):
                raise HelloRefusedError(
                    HelloRefusal.SOURCE_TAKEN, f"source {source} is sent by feeder {owner.hello.feeder}"
                )

    def _forget(self, feeder: Feeder) -> None:
        del self._feeders[feeder.hello.feeder]
        self._by_identity.pop(feeder.identity, None)
        for source, owner in list(self._owner.items()):
            if owner is feeder:
                del self._owner[source]

    def message_came(self, now_ns: int, identity: bytes) -> Feeder | None:
        """The feeder behind an identity, None if it is unknown; notes the time of the message."""
        feeder = self._by_identity.get(identity)
        if feeder is not None:
            feeder.last_message_ns = now_ns
        return feeder

    def end_of_run(self, feeder: Feeder, message: EndOfRun) -> None:
        """A feeder has sent everything."""
        feeder.ended = True
        feeder.last_mep = message.last_mep

    def goodbye(self, feeder: Feeder) -> None:
        """A feeder leaves by intent: nothing more comes from it."""
        feeder.ended = True
        feeder.gone = True

    def owner_of(self, source: int) -> bytes | None:
        """Address of the feeder that sends a source."""
        feeder = self._owner.get(source)
        return None if feeder is None else feeder.identity

    def identities(self) -> list[bytes]:
        """Addresses of all feeders that have not left."""
        return [feeder.identity for feeder in self._feeders.values() if not feeder.gone]

    def connected(self, now_ns: int) -> int:
        """Number of feeders that are not silent."""
        return sum(not feeder.is_silent(now_ns) for feeder in self._feeders.values())

    def awaited(self, now_ns: int) -> tuple[AwaitedFeeder, ...]:
        """The feeders from which fragments may still come: those that are not silent, each with its sources."""
        return tuple(
            AwaitedFeeder(
                feeder.hello.sources, (-1 if feeder.last_mep is None else feeder.last_mep) if feeder.ended else None
            )
            for feeder in self._feeders.values()
            if not feeder.is_silent(now_ns)
        )

    def all_ended(self, now_ns: int) -> bool:
        """True when no feeder of a started run will send more: all have ended or are silent, one at least has ended."""
        feeders = self._feeders.values()
        over = all(feeder.ended or feeder.is_silent(now_ns) for feeder in feeders)
        return self.started and over and any(feeder.ended for feeder in feeders)

    def is_deserted(self, now_ns: int) -> bool:
        """True when all feeders have said goodbye or are silent."""
        return all(feeder.is_silent(now_ns) for feeder in self._feeders.values())

    def feeders(self) -> list[Feeder]:
        """All feeders of the run."""
        return list(self._feeders.values())

    def floor(self) -> int:
        """Below this id every MEP is acknowledged to every feeder; 0 without feeders."""
        return min((feeder.hello.first_mep for feeder in self._feeders.values()), default=0)

    def is_satisfied(self) -> bool:
        """True when every feeder has left, or the last MEP that it announced is acknowledged."""
        return all(
            feeder.gone or feeder.last_mep is None or feeder.hello.first_mep > feeder.last_mep
            for feeder in self._feeders.values()
        )

    def finish_run(self) -> None:
        """The run is over: the next hello of a new session may start another one."""
        self.started = False
        self._feeders.clear()
        self._owner.clear()
        self._by_identity.clear()
        self.run = self._configured_run or None
