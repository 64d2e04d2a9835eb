"""Any sequence of control messages, fragments, times and commands: nothing raises, nothing is built twice."""

import contextlib

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.readout.run_keeper import RunNotClosedError
from hltnode.protocol.transport.control_messages import decode_message, encode_message
from hltnode.protocol.transport.feeder_messages import EndOfRun, Goodbye, Hello, Revoked
from hltnode.protocol.transport.mep_ranges import MepRanges
from hltnode.protocol.transport.run_control_messages import RunState
from tests.daemon.readout.bench import EVENTS, MS, SECOND, Bench
from tests.protocol.transport.test_control_messages import messages

identities = st.sampled_from([b"a", b"b", b"c", b"d"])
runs = st.sampled_from([7, 8, 9])
ids = st.integers(0, 12) | st.sampled_from([63, 64, (1 << 64) - 1])
spans = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)).map(lambda it: (it[0], sum(it))), max_size=3)
hellos = st.builds(
    Hello,
    st.sampled_from(["a", "b", "c", "x" * 64]),
    st.sampled_from(["s", "t"]),
    runs,
    st.sampled_from([(1,), (2,), (1, 2), ()]),
    ids,
    st.sampled_from([1, EVENTS, EVENTS + 1, 0]),
    st.just(1000),
    st.booleans(),
)


class HostilePeers(RuleBasedStateMachine):
    """Peers that send any messages in any order to a node with two feeders, and to a busy node."""

    @initialize(journal=st.booleans(), run=st.sampled_from([0, 8]))
    def start(self, journal: bool, run: int) -> None:
        self.bench = Bench(feeders=2, run=run, journal={9: ((0, 3), (6, 6))} if journal else None)
        self.kept = {(9, mep) for mep in (0, 1, 2, 3, 6) if journal}
        """MEPs that are in files of runs that are not over."""
        self.summaries = self.revoked = self.written = 0

    @rule(identity=identities, hello=hellos)
    def hello(self, identity: bytes, hello: Hello) -> None:
        self.bench.arrive(identity, hello)

    @rule(run=st.sampled_from([7, 8]), supervises=st.booleans())
    def two_feeders_come(self, run: int, supervises: bool) -> None:
        self.bench.hello("a", run=run, supervises=supervises)
        self.bench.hello("b", run=run)

    @rule(run=st.sampled_from([7, 8, 9]), meps=st.lists(st.integers(0, 3), min_size=1, max_size=3), first_mep=ids)
    def two_feeders_take_a_turn_after_a_silence(self, run: int, meps: list[int], first_mep: int) -> None:
        self.bench.pass_time(6 * SECOND)
        self.two_feeders_come(run, first_mep == 0)
        for mep in meps:
            self.bench.send_mep(mep, "a", "b", run=run)
        self.bench.work()

    @rule(identity=identities, run=runs, last_mep=st.none() | ids)
    def end(self, identity: bytes, run: int, last_mep: int | None) -> None:
        self.bench.arrive(identity, EndOfRun(run, last_mep))

    @rule(identity=identities)
    def goodbye(self, identity: bytes) -> None:
        self.bench.arrive(identity, Goodbye("feeder ends"))

    @rule(identity=identities, run=runs, meps=spans)
    def revoke(self, identity: bytes, run: int, meps: list[tuple[int, int]]) -> None:
        self.bench.arrive(identity, Revoked(run, tuple(meps)))

    @rule(identity=identities, message=messages)
    def anything(self, identity: bytes, message: object) -> None:
        self.bench.arrive(identity, decode_message(encode_message(message)))  # type: ignore[arg-type]

    @rule(mep=ids, run=runs, names=st.sampled_from([("a",), ("b",), ("a", "b"), ("z",)]))
    def fragments(self, mep: int, run: int, names: tuple[str, ...]) -> None:
        self.bench.send_mep(mep, *names, run=run)

    @rule(ns=st.sampled_from([MS, 100 * MS, SECOND, 6 * SECOND, 61 * SECOND]))
    def pass_time(self, ns: int) -> None:
        self.bench.pass_time(ns)

    @rule()
    def finish_batches(self) -> None:
        self.bench.finish_batches()

    @rule(alive=st.sets(identities))
    def connections(self, alive: set[bytes]) -> None:
        self.bench.connections.alive = alive

    @rule(run=st.none() | runs)
    def close(self, run: int | None) -> None:
        with contextlib.suppress(RunNotClosedError):
            self.bench.control.close(run)

    @rule()
    def files_are_rewritten(self) -> None:
        for request in self.bench.revoked[self.revoked :]:
            revoked = MepRanges(request.meps)
            self.kept = {
                (run, mep)
                for run, mep in self.kept
                if run != request.run or mep not in revoked or mep in request.in_node
            }
            self.bench.protocol.events_revoked(request.receipt)
        self.revoked = len(self.bench.revoked)

    @rule(run=st.none() | runs)
    def stop_and_start(self, run: int | None) -> None:
        self.bench.control.close_open()
        while self.bench.batches:
            self.bench.finish_batches()
        self.bench.control.leave_run()
        self.bench.state = RunState.READY
        self.bench.hello("a")
        self.bench.control.open_runs(run)
        self.bench.state = RunState.RUNNING

    @rule()
    def pause_or_resume(self) -> None:
        if self.bench.state is RunState.PAUSED:
            self.bench.state = RunState.RUNNING
            self.bench.control.resume()
        else:
            self.bench.state = RunState.PAUSED
            self.bench.control.pause()

    @invariant()
    def nothing_is_built_twice(self) -> None:
        if not hasattr(self, "bench"):
            return
        dropped = {
            (it.run, mep) for it in self.bench.revoked for first, last in it.meps for mep in range(first, last + 1)
        }
        for entry in self.bench.written[self.written :]:
            assert entry not in self.kept or entry in dropped
            self.kept.add(entry)
        self.written = len(self.bench.written)
        for run, _, over in self.bench.ends[self.summaries :]:
            if over:
                self.kept = {entry for entry in self.kept if entry[0] != run}
        self.summaries = len(self.bench.ends)

    @invariant()
    def what_is_acknowledged_stays_known(self) -> None:
        if hasattr(self, "bench"):
            known = {run for run, _ in self.kept}
            assert all(self.bench.registry.find(run) is not None for run in known)

    @invariant()
    def accounts_close(self) -> None:
        if hasattr(self, "bench"):
            assert closes(accounting(self.bench.counters, self.bench.builder))


TestHostilePeers = HostilePeers.TestCase
TestHostilePeers.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
