"""The feeders of one run, and the MEPs that each has confirmed (no I/O, no clock)."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from hltnode.daemon.event_building.stimuli_and_effects import AwaitedFeeder
from hltnode.protocol.transport.feeder_messages import EndOfRun, Hello, Nack
from hltnode.protocol.transport.mep_ranges import MepRanges
from hltnode.protocol.transport.refusals import HelloRefusal

# Feeders repeat their hello every second. After five missed hellos a feeder counts as silent until its next message.
SILENT_NS = 5_000_000_000
# Shortest time between two probes of the connection of one feeder. A feeder that was killed in this time is accepted
# with its next hello, which it sends after a second.
PROBE_NS = 500_000_000
# Time in which a feeder that ended without a goodbye may come back to its run, for example after a kill. It is longer
# than the delay after which process supervisors restart a process.
RETURN_NS = 60_000_000_000
# Refusals kept for the next hello of a feeder. Above it the oldest are dropped, and the feeder sends those fragments
# again after 20 s (`client.silent_meps`).
MAX_UNSENT = 4096
# Feeders that a text names.
NAMED_FEEDERS = 8
# Most feeder names of a run above the expected number. Each of them replaces a silent feeder.
MAX_REPLACED = 64


class HelloRefusedError(ValueError):
    """The hello does not fit the run. `reason` is sent in the Error message."""

    def __init__(self, reason: HelloRefusal, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(slots=True)
class Feeder:
    """One feeder process: its last hello, its identity on the control socket, and its progress in the run."""

    identity: bytes
    hello: Hello
    last_message_ns: int
    token: int = 0
    """Its permission to send: frames with this token, of its sources, are accepted."""
    done_before: MepRanges = field(default_factory=MepRanges)
    """MEPs acknowledged to an earlier session of the same name. This session may not revoke them."""
    present: bool = True
    """True after a hello since its run became the current one."""
    ended: bool = False
    last_mep: int | None = None
    gone: bool = False
    replaced: bool = False
    """True if it fell silent and feeders of other names took its place or all its sources."""
    took_part: bool = False
    """True if the run has started with it: MEPs may wait for its fragments or its confirmation."""
    reached_ns: int | None = None
    """When its connection was last probed and had not ended."""
    unsent: deque[Nack] = field(default_factory=lambda: deque(maxlen=MAX_UNSENT))
    """Refusals that were not sent to it: its connection had ended, or it did not read."""
    missed: dict[int, MepRanges] = field(default_factory=dict)
    """MEPs from `first_mep` on that were closed without fragments of this feeder, by one missing source of each."""

    def is_reached(self, now_ns: int) -> bool:
        """True if a probe of its connection would be too early."""
        return self.reached_ns is not None and now_ns - self.reached_ns < PROBE_NS

    def is_silent(self, now_ns: int) -> bool:
        """True if it said goodbye or sent no message for `SILENT_NS`."""
        return self.gone or now_ns - self.last_message_ns > SILENT_NS

    @property
    def has_confirmed(self) -> bool:
        """True if it has sent all its MEPs and confirmed their acknowledgements."""
        return self.ended and (self.last_mep is None or self.hello.first_mep > self.last_mep)

    def has_to_send(self, mep: int) -> bool:
        """False for a MEP that is acknowledged to this feeder or follows its last MEP."""
        has_ended = self.ended and (self.last_mep is None or mep > self.last_mep)
        return mep >= self.hello.first_mep and not has_ended

    def forget_missed(self) -> None:
        """Forget missed MEPs below `first_mep`, which are acknowledged to the feeder."""
        for source, meps in list(self.missed.items()):
            meps.discard(0, self.hello.first_mep - 1)
            if not meps:
                del self.missed[source]

    def describe(self, now_ns: int) -> dict[str, object]:
        """The feeder for /status."""
        return {
            "name": self.hello.feeder,
            "sources": len(self.hello.sources),
            "connected": not self.is_silent(now_ns),
            "supervises": self.hello.supervises,
            "ended": self.ended,
            "last_mep": self.last_mep,
            "confirmed_below": self.hello.first_mep,
            "confirmed": self.has_confirmed,
            "silent_seconds": round((now_ns - self.last_message_ns) * 1e-9, 1) if self.is_silent(now_ns) else 0.0,
        }


class MissingFeeder(NamedTuple):
    """A feeder that left its run, or fell silent, before it had sent all its MEPs."""

    run: int
    name: str
    """Empty: no feeder has come back since the node started, so no name is known."""
    silent_ns: int | None
    """Time since its last message; None if it sent none to this session of the node."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """The parameters with which the builder starts the run."""

    run: int
    sources: tuple[int, ...]
    first_mep: int
    events_per_mep: int
    revoked: tuple[tuple[int, int], ...] = ()


class RunFeeders:
    """All feeders that have taken part in a run.

    Args:
        least: number of feeders that the run needs, unless the feeders announce more.
        most: most feeders of the run.
        resumed: an earlier session of the node has begun the run: every feeder may have sent MEPs to it.
    """

    def __init__(self, run: int, least: int, most: int, *, resumed: bool = False) -> None:
        self.run = run
        self.epoch = 0
        """Changes when the run becomes the current one and when it is left: feeders then send all kept MEPs again."""
        self.started = False
        self.supervised = False
        """True if a feeder may revoke MEPs of this run."""
        self.input = ""
        """The input that its feeders send, by their hellos; empty: unknown."""
        self.input_kept = False
        """True if the journal gets the input with the next batch."""
        self.floor = 0
        """Every feeder has confirmed all MEPs below this id. It never falls."""
        self.revoked = MepRanges()
        """MEPs that are assigned to another node; their fragments are refused here."""
        self._resumed = resumed
        self._least = least
        self._most = most
        self._sources: frozenset[int] = frozenset()
        """The sources of the run, after its start."""
        self._feeders: dict[str, Feeder] = {}
        self._owner: dict[int, Feeder] = {}

    # Hellos

    def rival(self, now_ns: int, hello: Hello) -> Feeder | None:
        """Another process with the same feeder name and a recent message: it runs, or has just crashed."""
        known = self._feeders.get(hello.feeder)
        if known is None or known.hello.session == hello.session or known.is_silent(now_ns):
            return None
        return known

    def join(self, now_ns: int, identity: bytes, hello: Hello, done: MepRanges) -> tuple[Feeder, bytes | None]:
        """Note a new or repeated hello. Returns its feeder, and the earlier identity of the feeder if that has changed.

        A new session replaces an old one of the same name, see `rival`. It may not revoke the MEPs in `done`. Raises
        HelloRefusedError if the run has no place for the feeder.
        """
        silent = self._place(now_ns, hello)
        if silent is not None:
            silent.replaced = True
        known = self._feeders.get(hello.feeder)
        if known is not None and known.hello.sources != hello.sources:
            self._owner = {source: owner for source, owner in self._owner.items() if owner is not known}
        before = None if known is None else known.identity
        if known is not None and known.hello.session == hello.session:
            known.identity, known.hello, known.last_message_ns = identity, hello, now_ns
            known.gone, known.replaced, known.present = False, False, True
            known.forget_missed()
            feeder = known
        else:
            feeder = Feeder(identity, hello, now_ns)
            if known is not None:
                feeder.done_before = MepRanges(done.ranges())
                feeder.missed = known.missed
                feeder.took_part = known.took_part
            self._feeders[hello.feeder] = feeder
        for source in hello.sources:
            self._owner[source] = feeder
        feeder.took_part |= self.started or self._resumed
        self._replace_silent_without_sources(now_ns)
        return feeder, before if before != identity else None

    def _replace_silent_without_sources(self, now_ns: int) -> None:
        """Feeders with other parts may have taken all sources of a silent feeder: nothing waits for it any more."""
        owners = {id(feeder) for feeder in self._owner.values()}
        for feeder in self._active():
            if feeder.is_silent(now_ns) and id(feeder) not in owners:
                feeder.replaced = True

    def _place(self, now_ns: int, hello: Hello) -> Feeder | None:
        """The silent feeder that a hello replaces; None if none must be replaced. Raises HelloRefusedError."""
        active = self._active()
        known = self._feeders.get(hello.feeder)
        place = None
        if len(active) >= self.needed(now_ns) and (known is None or known.replaced):
            silent = [feeder for feeder in active if feeder.is_silent(now_ns)]
            wanted = set(hello.sources)
            place = next((feeder for feeder in silent if wanted.intersection(feeder.hello.sources)), None)
            if place is None and len(active) >= self._most:
                place = silent[0] if silent else None
            n_replaced = len(self._feeders) - len(active)
            full = place is None and len(active) >= self._most
            if full or (known is None and place is not None and n_replaced >= MAX_REPLACED):
                raise HelloRefusedError(
                    HelloRefusal.TOO_MANY_FEEDERS,
                    f"the run has no place for another feeder: builder.max_feeders of the node is {self._most}",
                )
        for source in hello.sources:
            owner = self._owner.get(source)
            if owner is not None and owner.hello.feeder != hello.feeder and not owner.is_silent(now_ns):
                raise HelloRefusedError(
                    HelloRefusal.SOURCE_TAKEN, f"feeder {owner.hello.feeder} already sends source {source}"
                )
        foreign = sorted(set(hello.sources) - self._sources) if self.started and known is None else []
        if foreign:
            raise HelloRefusedError(
                HelloRefusal.SOURCES_FIXED, f"run {self.run} has started without source {foreign[0]}"
            )
        return place

    def needed(self, now_ns: int) -> int:
        """Number of feeders that the run needs, by configuration and by the announcements of its feeders.

        An announcement lives as long as its connection: a feeder that has gone delays no later one.
        """
        return self._needed_by([feeder for feeder in self._active() if not feeder.is_silent(now_ns)])

    def _needed_by(self, feeders: Iterable[Feeder]) -> int:
        announced = max((feeder.hello.feeders for feeder in feeders), default=1)
        return min(max(self._least, announced), self._most)

    def _participants(self, now_ns: int) -> list[Feeder]:
        """All feeders that may have sent MEPs, the replaced ones too. A feeder that vanished before a start has not."""
        feeders = self._feeders.values()
        return [each for each in feeders if each.took_part or each.ended or not each.is_silent(now_ns)]

    def _counted(self, now_ns: int) -> list[Feeder]:
        """The feeders of the run, without those that vanished before the run started with them."""
        return [feeder for feeder in self._active() if feeder.took_part or not feeder.is_silent(now_ns)]

    def take_input(self, hello: Hello, *, has_data: bool) -> None:
        """Note the input of a hello.

        has_data: the node has MEPs of this run, or their fragments may arrive. Raises HelloRefusedError: these are of
        another input.
        """
        if not hello.input or hello.input == self.input:
            return
        if self.input and has_data:
            raise HelloRefusedError(
                HelloRefusal.FOREIGN_INPUT,
                f"run {self.run} is not finished, and its MEPs are of another input than that of feeder {hello.feeder}",
            )
        self.input, self.input_kept = hello.input, False

    def begin_epoch(self, epoch: int) -> None:
        """Note that the run becomes the current one or is left. Each feeder is present only after its next hello."""
        self.epoch = epoch
        self.started = False
        for feeder in self._feeders.values():
            feeder.present = False

    def start(self, now_ns: int, configured_sources: tuple[int, ...] | None) -> RunStart | None:
        """Start the run if it has not started and every feeder is present or has confirmed all its MEPs; else None."""
        counted = self._counted(now_ns)
        if self.started or not counted or len(counted) < self.needed(now_ns):
            return None
        if not all(feeder.present or feeder.has_confirmed for feeder in counted):
            return None
        self.started = True
        for feeder in counted:
            feeder.took_part = True
        hellos = [feeder.hello for feeder in counted]
        sources = configured_sources or tuple(sorted({source for hello in hellos for source in hello.sources}))
        self._sources = frozenset(sources)
        return RunStart(
            run=self.run,
            sources=sources,
            first_mep=max(self.floor, min(hello.first_mep for hello in hellos)),
            events_per_mep=max(hello.events_per_mep for hello in hellos),
            revoked=tuple(self.revoked.ranges()),
        )

    def raise_floor(self, now_ns: int) -> bool:
        """Raise the floor to the MEPs that all feeders have confirmed; True if it has risen.

        A silent feeder does not count if the others are as many as the run needs: their confirmations say that the node
        has acknowledged the MEPs. In a supervised run a MEP below may belong to another node, so all feeders count.
        """
        feeders = self._active() if self.supervised else [each for each in self._active() if not each.is_silent(now_ns)]
        below = min((feeder.hello.first_mep for feeder in feeders), default=0)
        if len(feeders) < self.needed(now_ns) or below <= self.floor:
            return False
        self.floor = below
        self.revoked.discard(0, below - 1)
        return True

    # Other messages

    @staticmethod
    def end_of_run(feeder: Feeder, message: EndOfRun) -> bool:
        """Note the last MEP of a feeder; False if it was known."""
        news = not feeder.ended or feeder.last_mep != message.last_mep
        feeder.ended = True
        feeder.last_mep = message.last_mep
        return news

    # Queries

    def _active(self) -> list[Feeder]:
        return [feeder for feeder in self._feeders.values() if not feeder.replaced]

    def awaited(self, now_ns: int) -> tuple[AwaitedFeeder, ...]:
        """The feeders that are not silent, each with its sources: they may still send fragments."""
        return tuple(
            AwaitedFeeder(
                feeder.hello.sources, (-1 if feeder.last_mep is None else feeder.last_mep) if feeder.ended else None
            )
            for feeder in self._active()
            if not feeder.is_silent(now_ns)
        )

    def feeders(self) -> list[Feeder]:
        """All feeders that have taken part."""
        return list(self._feeders.values())

    def find(self, name: str) -> Feeder | None:
        """The feeder of this name."""
        return self._feeders.get(name)

    def knows(self, name: str, session: str) -> bool:
        """True if a feeder of this name and session has taken part."""
        feeder = self._feeders.get(name)
        return feeder is not None and feeder.hello.session == session

    def may_send(self, feeder: Feeder, source: int) -> bool:
        """True if this feeder is the present sender of a source."""
        return self._owner.get(source) is feeder

    def sender_of(self, source: int) -> Feeder | None:
        """The feeder that sends a source; None if there is none."""
        return self._owner.get(source)

    def owner_of(self, source: int) -> bytes | None:
        """Identity of the feeder that sends a source; None if there is none."""
        feeder = self._owner.get(source)
        return None if feeder is None else feeder.identity

    def closed_without(self, mep: int, missing: Iterable[int]) -> list[tuple[bytes, int]]:
        """Note a MEP that was closed without some sources.

        Returns the identity of each feeder that should have sent a missing source and has not left, with the first of
        these sources.
        """
        lacking: dict[str, tuple[Feeder, int]] = {}
        for source in missing:
            feeder = self._owner.get(source)
            if feeder is not None and feeder.hello.feeder not in lacking and feeder.has_to_send(mep):
                feeder.missed.setdefault(source, MepRanges()).add(mep)
                lacking[feeder.hello.feeder] = feeder, source
        return [(feeder.identity, source) for feeder, source in lacking.values() if not feeder.gone]

    def identities(self) -> list[bytes]:
        """Identities of all feeders that have not left."""
        return [feeder.identity for feeder in self._feeders.values() if not feeder.gone and not feeder.replaced]

    def lost(self, now_ns: int) -> list[Feeder]:
        """Feeders that left or fell silent before they had sent all their MEPs."""
        return [feeder for feeder in self._active() if not feeder.ended and feeder.is_silent(now_ns)]

    def missing(self, now_ns: int) -> list[Feeder]:
        """The lost feeders without which the run has gone on, or cannot start again.

        A feeder that vanished before the run started with it is not among them.
        """
        return [feeder for feeder in self.lost(now_ns) if self.started or feeder.took_part]

    def missing_while_kept(self, now_ns: int) -> list[MissingFeeder]:
        """The missing feeders of a kept run, all of whose feeders are away; empty if one is connected.

        After a restart of the node no feeder is known before its hello. The run is not over, so one of them may have
        more to send.
        """
        if not self.is_deserted(now_ns):
            return []
        lost = self.lost(now_ns)
        if lost:
            return [MissingFeeder(self.run, each.hello.feeder, now_ns - each.last_message_ns) for each in lost]
        feeders = self._participants(now_ns)
        unknown = self._resumed and len(feeders) < self._needed_by(feeders)
        return [MissingFeeder(self.run, "", None)] if unknown else []

    def connected(self, now_ns: int) -> int:
        """Number of feeders that are not silent."""
        return sum(not feeder.is_silent(now_ns) for feeder in self._feeders.values())

    def silent_from_ns(self, now_ns: int) -> int:
        """Time at which the next feeder becomes silent if no message comes; 1 << 62 without feeders."""
        times = [each.last_message_ns for each in self._feeders.values() if not each.is_silent(now_ns)]
        return min(times) + SILENT_NS + 1 if times else 1 << 62

    def is_deserted(self, now_ns: int) -> bool:
        """True if every feeder has said goodbye or is silent."""
        return all(feeder.is_silent(now_ns) for feeder in self._feeders.values())

    def has_been_left(self, now_ns: int) -> bool:
        """True if every feeder has said goodbye or was silent for longer than `RETURN_NS`."""
        return all(self._has_left(now_ns, feeder) for feeder in self._feeders.values())

    def is_over(self, now_ns: int) -> bool:
        """True if every feeder has confirmed its last MEP and has left.

        A feeder that ended without a goodbye may have been killed: the run waits `RETURN_NS` for it.
        """
        feeders = self._participants(now_ns)
        return len(feeders) >= self._needed_by(feeders) and all(
            feeder.has_confirmed and self._has_left(now_ns, feeder) for feeder in feeders
        )

    @staticmethod
    def _has_left(now_ns: int, feeder: Feeder) -> bool:
        return feeder.gone or now_ns - feeder.last_message_ns > RETURN_NS

    def waits_for(self, now_ns: int) -> str | None:
        """The feeders without which the run cannot start or its floor cannot rise, as text for operators."""
        needed, counted = self.needed(now_ns), self._counted(now_ns)
        here = [feeder for feeder in counted if not feeder.is_silent(now_ns)]
        lost = [feeder for feeder in counted if feeder.is_silent(now_ns) and not feeder.has_confirmed]
        if len(here) >= needed and (not lost or (self.started and not self.supervised)):
            return None
        if not here and not lost:
            return None
        text = f"run {self.run} waits for feeders: {len(here)} of {needed} are connected"
        announcer = max(here, key=lambda feeder: feeder.hello.feeders, default=None)
        if announcer is not None and announcer.hello.feeders >= needed > self._least:
            text += f"; feeder {announcer.hello.feeder} announces {announcer.hello.feeders}"
        if lost:
            names = ", ".join(
                f"{feeder.hello.feeder} (silent for {(now_ns - feeder.last_message_ns) / 1e9:.0f} s)"
                for feeder in lost[:NAMED_FEEDERS]
            )
            more = f" and {len(lost) - NAMED_FEEDERS} more" if len(lost) > NAMED_FEEDERS else ""
            text += f"; missing: {names}{more}"
        return text

    def reason_to_keep(self, now_ns: int) -> str:
        """The reason why the run is not over, as text for operators."""
        feeders = self._participants(now_ns)
        if len(feeders) < self._needed_by(feeders):
            return f"{len(feeders)} of {self._needed_by(feeders)} feeders have come back"
        for feeder in feeders:
            if not feeder.has_confirmed:
                last = "not ended" if not feeder.ended else f"last MEP {feeder.last_mep}"
                silent = "; silent" if feeder.is_silent(now_ns) else ""
                return f"feeder {feeder.hello.feeder} has confirmed below MEP {feeder.hello.first_mep}, {last}{silent}"
        return "its feeders have confirmed and not all have left"
