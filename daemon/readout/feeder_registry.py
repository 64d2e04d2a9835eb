"""The feeder and the run of each connection, for the current run and the kept runs (no I/O, no clock)."""

from collections.abc import Callable
from itertools import count

from hltnode.daemon.readout.frame_permissions import FramePermissions
from hltnode.daemon.readout.run_feeders import Feeder, HelloRefusedError, RunFeeders, RunStart
from hltnode.protocol.transport.feeder_messages import Hello, Nack
from hltnode.protocol.transport.mep_ranges import MepRanges
from hltnode.protocol.transport.refusals import HelloRefusal

# Most kept runs, which wait for their feeders or for an operator to close them. Far more than a site leaves on purpose.
MAX_KEPT_RUNS = 1000


class FeederRegistry:
    """The current run, the kept ones, and their feeders.

    Args:
        node, chain: name of the node, and of the chain that it runs.
        run: the run to accept; 0 accepts the run of the first hello.
        min_feeders: number of feeders that a run needs to start, unless the feeders announce more.
        max_feeders: most feeders of a run.
        sources: the expected sources; None for the union of the announced sources.
        max_events_per_mep: most events of one MEP.
        admit: called before a run begins; raises ValueError, which names the run, if the node cannot process it because
            it has no conditions.
    """

    def __init__(
        self,
        *,
        node: str,
        chain: str,
        run: int,
        min_feeders: int,
        max_feeders: int,
        sources: tuple[int, ...] | None,
        max_events_per_mep: int,
        admit: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.permissions = FramePermissions()
        """The tokens of the feeders of all runs."""
        self.chain = chain
        """The chain that the node runs; feeders of another chain are refused."""
        self.configured_run = run
        """The only accepted run; 0 for any run."""
        self.current: RunFeeders | None = None
        self.kept: dict[int, RunFeeders] = {}
        self._node = node
        self._admit = admit
        self._least, self._most = min_feeders, max_feeders
        self._configured_sources = sources
        self._max_events_per_mep = max_events_per_mep
        self._by_identity: dict[bytes, tuple[RunFeeders, Feeder]] = {}
        self._epochs = count()

    # Runs

    def find(self, run: int) -> RunFeeders | None:
        """The feeders of the current run or of a kept run; None for another run. Any thread."""
        current = self.current
        if current is not None and current.run == run:
            return current
        return self.kept.get(run)

    def keep(self, run: int) -> RunFeeders:
        """Keep a run that an earlier session of the node has left."""
        kept = self.kept[run] = RunFeeders(run, self._least, self._most, resumed=True)
        return kept

    def admit(self, run: int) -> None:
        """Check that a run may begin. Raises HelloRefusedError: it has no conditions."""
        try:
            self._admit(run)
        except ValueError as error:
            raise HelloRefusedError(HelloRefusal.NO_CONDITIONS, str(error)) from error

    def begin(self, run: int) -> RunFeeders:
        """Make a new or kept run the current one. There must be no current run.

        Raises HelloRefusedError: too many runs are kept.
        """
        if run not in self.kept and len(self.kept) >= MAX_KEPT_RUNS:
            raise HelloRefusedError(
                HelloRefusal.TOO_MANY_RUNS,
                f"{len(self.kept)} runs are kept: an operator must close some (hltnode ctl close)",
            )
        self.current = self.kept.pop(run, None) or RunFeeders(run, self._least, self._most)
        self.current.begin_epoch(next(self._epochs))
        return self.current

    def leave(self) -> None:
        """Keep the current run. After that there is no current run."""
        if self.current is not None:
            self.current.begin_epoch(next(self._epochs))
            self.kept[self.current.run] = self.current
            self.current = None

    def forget(self, run: RunFeeders) -> None:
        """Remove a run that is over or closed, with its feeders."""
        for feeder in run.feeders():
            self._by_identity.pop(feeder.identity, None)
            self.permissions.end(feeder)
        self.kept.pop(run.run, None)
        if run is self.current:
            self.current = None

    def start(self, now_ns: int, run: RunFeeders) -> RunStart | None:
        """The start of the current run if its last missing feeder has said hello; otherwise None."""
        return run.start(now_ns, self._configured_sources) if run is self.current else None

    # Feeders

    def check(self, hello: Hello) -> None:
        """Check a hello against rules of all runs. Raises HelloRefusedError."""
        if hello.chain and hello.chain != self.chain:
            raise HelloRefusedError(
                HelloRefusal.FOREIGN_CHAIN,
                f"node {self._node} runs chain {self.chain}; this feeder sends data of chain {hello.chain}",
            )
        if not hello.sources:
            raise HelloRefusedError(HelloRefusal.NO_SOURCES, f"feeder {hello.feeder} announces no sources")
        if not 0 < hello.events_per_mep <= self._max_events_per_mep:
            raise HelloRefusedError(
                HelloRefusal.EVENTS_PER_MEP,
                f"{hello.events_per_mep} events per MEP, 1 to {self._max_events_per_mep} expected",
            )

    def hello(self, now_ns: int, identity: bytes, run: RunFeeders, hello: Hello, done: MepRanges) -> Feeder:
        """Note a hello for a run; `done` are its acknowledged MEPs. Returns the feeder. Raises HelloRefusedError."""
        bound = self._by_identity.get(identity)
        if bound is not None and (bound[0] is not run or bound[1].hello.feeder != hello.feeder):
            raise HelloRefusedError(
                HelloRefusal.CONNECTION_TAKEN,
                f"this connection belongs to feeder {bound[1].hello.feeder} of run {bound[0].run}",
            )
        known = run.find(hello.feeder)
        was_permitted = (
            known is not None
            and not (known.gone or known.replaced)
            and all(run.may_send(known, source) for source in hello.sources)
        )
        sources = None if known is None else known.hello.sources
        feeder, before = run.join(now_ns, identity, hello, done)
        if known is not None and known is not feeder:
            self.permissions.end(known)
        self.permissions.give(run, feeder)
        if known is not feeder or not was_permitted or sources != hello.sources:
            # Its sources may have had another feeder. After a hello that changes nothing all answers stay valid.
            self.permissions.recheck()
        if before is not None:
            self._by_identity.pop(before, None)
        self._by_identity[identity] = (run, feeder)
        return feeder

    def message_came(self, now_ns: int, identity: bytes) -> tuple[RunFeeders, Feeder] | None:
        """Note the time of a message. Returns run and feeder of the identity, None if it is unknown."""
        known = self._by_identity.get(identity)
        if known is not None:
            known[1].last_message_ns = now_ns
        return known

    def is_welcome(self, identity: bytes) -> bool:
        """Whether a connection belongs to a feeder of a run."""
        return identity in self._by_identity

    def left(self, feeder: Feeder) -> None:
        """Note the goodbye of a feeder: its token ends until its next hello."""
        feeder.gone = True
        self.permissions.recheck()

    def knows(self, name: str, session: str) -> bool:
        """True if a feeder of this name and session has said hello."""
        runs = [*self.kept.values(), *([] if self.current is None else [self.current])]
        return any(run.knows(name, session) for run in runs)

    def owner_of(self, run: int, source: int) -> bytes | None:
        """Identity of the feeder that sends a source of a run; None if there is none. Any thread."""
        feeders = self.find(run)
        return None if feeders is None else feeders.owner_of(source)

    def keep_unsent(self, nack: Nack) -> None:
        """Keep a refusal that could not be sent for the next hello of the feeder that sends the source."""
        feeders = self.find(nack.run)
        feeder = None if feeders is None else feeders.sender_of(nack.source)
        if feeder is not None:
            feeder.unsent.append(nack)

    def identities(self, run: int) -> list[bytes]:
        """Identities of all feeders of a run that have not left."""
        feeders = self.find(run)
        return [] if feeders is None else feeders.identities()

    def connected(self, now_ns: int) -> int:
        """Number of feeders of the current run that are not silent."""
        return 0 if self.current is None else self.current.connected(now_ns)
