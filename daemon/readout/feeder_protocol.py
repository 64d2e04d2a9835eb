"""Joins feeders, event builder and acknowledgements: every control message and every effect ends here.

All calls come from the event loop; this object owns the builder's conversation with the outside.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.mep_ranges import as_ranges
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import UNKNOWN_FEEDER, HelloRefusal, SlotState
from hltnode.daemon.compute.pipeline import Batch
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.run_summary import RunSummary
from hltnode.daemon.event_building.stimuli_and_effects import (
    Abandon,
    AcknowledgedBelow,
    CloseMep,
    CloseOpen,
    Drain,
    Effect,
    EndRun,
    GrantCredit,
    MepRecord,
    Reject,
    Resume,
    RevokeMeps,
    SealSlot,
    SetTimes,
    SlotFreed,
    StartRun,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.output.output_stage import RevokeEvents
from hltnode.daemon.readout.acknowledgements import Acknowledgements
from hltnode.daemon.readout.feeder_registry import FeederRegistry, HelloRefusedError, RunStart
from hltnode.daemon.readout.feeder_socket import ControlSocket
from hltnode.protocol.transport.control import (
    Ack,
    ControlMessage,
    Credit,
    EndOfRun,
    Error,
    Goodbye,
    Hello,
    Nack,
    Revoked,
    RunState,
    Welcome,
)

# Last fragments may still be in the sockets when the last feeder has said that it sent everything.
END_OF_RUN_PATIENCE_NS = 2_000_000_000
# More MEPs in one range than a node can have in its slots are not a message of ours.
MAX_REVOKED = 65_536
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("feeder_protocol")


class RunCoordinator:
    """What the node answers to feeders, and what it does with the effects of the builder.

    Args:
        submit: hands a sealed slot to the pipeline.
        revoke_events: hands the MEPs that went to another node to the outputs.
        finish_run: called with the summary of a run when it is over (True), or when this session leaves it (False).
    """

    def __init__(
        self,
        builder: EventBuilder,
        registry: FeederRegistry,
        counters: Counters,
        submit: Callable[[Batch], None],
        finish_run: Callable[[dict[str, Any], bool], None],
        revoke_events: Callable[[RevokeEvents], None],
        *,
        node: str,
        session: str,
        max_fragment_bytes: int,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.builder = builder
        self.registry = registry
        self._counters = counters
        self._submit = submit
        self._finish_run = finish_run
        self._revoke_events = revoke_events
        self._summary = RunSummary(counters, builder, node=node, session=session)
        self._node = node
        self._session = session
        self._configured_run = registry.run or 0
        self._max_fragment_bytes = max_fragment_bytes
        self._clock_ns = clock_ns
        self._control: ControlSocket | None = None
        self.acknowledged = Acknowledgements()
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self.node_state = RunState.IDLE
        """State of the run control: whether feeders are taken."""
        self._starts = 0
        self._run_over = False
        self._last_traffic_ns = 0
        self._last_received = 0

    def attach(self, control: ControlSocket) -> None:
        """Answer through this socket."""
        self._control = control

    # Control messages

    def message_arrived(self, identity: bytes, message: ControlMessage) -> None:
        """Take one message of a feeder."""
        now_ns = self._clock_ns()
        feeder = self.registry.heard(now_ns, identity)
        if isinstance(message, Hello):
            self._hello(now_ns, identity, message)
        elif feeder is None:
            self._send((identity,), Error(UNKNOWN_FEEDER, "say hello first"))
        elif isinstance(message, EndOfRun) and message.run == self.registry.run:
            self.registry.end_of_run(feeder, message)
            log.info("feeder_ended_run", feeder=feeder.hello.feeder, run=message.run, last_mep=message.last_mep)
        elif isinstance(message, Revoked) and message.run == self.registry.run:
            self._revoked(identity, message)
        elif isinstance(message, Goodbye):
            self.registry.goodbye(feeder)
            log.info("feeder_left", feeder=feeder.hello.feeder, reason=message.reason)
        else:
            self._counters.control_messages_rejected += 1
            self._send((identity,), Error("unexpected", f"{type(message).__name__} is not for the node now"))

    def _hello(self, now_ns: int, identity: bytes, hello: Hello) -> None:
        waiting = self.node_state is RunState.PAUSED and not self.registry.started
        if waiting or self.node_state not in (RunState.RUNNING, RunState.PAUSED):
            # No error: the feeder says hello again, until somebody starts the node.
            self._send((identity,), Goodbye(f"node is {self.node_state}"))
            return
        running = self.node_state is RunState.RUNNING
        if running and hello.run != self.registry.run and self.registry.is_deserted(now_ns) and self.is_quiet():
            # Everybody died without a word and another run wants to begin.
            if self.registry.started and not self._run_over:
                self._end_run()
            self._forget_run()
        try:
            self._refuse_double(now_ns, hello)
            start = self.registry.hello(now_ns, identity, hello)
            if start is not None:
                self._start_run(now_ns, start)
        except HelloRefusedError as error:
            self._counters.control_messages_rejected += 1
            self._counters.hellos_refused[error.reason] += 1
            if self._limit.due(("hello", error.reason)) is not None:
                log.warning("hello_refused", feeder=hello.feeder, reason=error.reason, text=str(error))
            self._send((identity,), Error(error.reason, str(error)))
            return
        run = hello.run
        self._send((identity,), self._welcome(run))
        if self.builder.run == run and self.registry.started:
            floor = self.registry.floor()
            self.builder.handle(now_ns, AcknowledgedBelow(floor))
            self.acknowledged.acknowledged_below(floor)
            acked = self.acknowledged.ranges(hello.first_mep)
            if acked:
                self._send((identity,), Ack(run, acked))
            self._send((identity,), Credit(run, self.builder.window.limit))

    def _welcome(self, run: int) -> Welcome:
        return Welcome(self._node, self._session, run, self._max_fragment_bytes)

    def _refuse_double(self, now_ns: int, hello: Hello) -> None:
        """A process that was restarted takes its place, one that is started a second time does not.

        What tells them apart is the connection of the first one: it ends with its process. The welcome that looks for
        it says nothing new to a feeder of this run.
        """
        rival = self.registry.rival(now_ns, hello)
        if rival is None or self._control is None:
            return
        if self._control.reaches(rival.identity, self._welcome(rival.hello.run)):
            raise HelloRefusedError(
                HelloRefusal.NAME_TAKEN,
                # Not its session: with that, who gets this answer could say hello in its place.
                f"another process feeds as {hello.feeder}, heard {(now_ns - rival.last_heard_ns) / 1e9:.1f} s ago",
            )

    def _start_run(self, now_ns: int, start: RunStart) -> None:
        done = self.acknowledged.earlier(start.run)
        try:
            effects = self.builder.handle(
                now_ns, StartRun(start.run, start.sources, start.first_mep, start.events_per_mep, done)
            )
        except ValueError as error:
            self.registry.finish_run()
            raise HelloRefusedError(HelloRefusal.RUN_CANNOT_START, str(error)) from error
        self._run_over = False
        self.acknowledged.begin(start.run)
        self._summary.begin()
        log.info(
            "run_started",
            run=start.run,
            sources=len(start.sources),
            first_mep=start.first_mep,
            events_per_mep=start.events_per_mep,
        )
        self.carry_out(effects)

    def _revoked(self, identity: bytes, message: Revoked) -> None:
        """Give up MEPs that went to another node while this one was lost: none of their events may stay here."""
        meps = {m for first, last in message.meps for m in range(first, min(last, first + MAX_REVOKED) + 1)}
        log.warning("meps_revoked", run=message.run, meps=len(meps), first=min(meps, default=None))
        in_slots = {
            mep.mep for slot in self.builder.pool.slots for mep in slot.meps if mep.mep not in self.builder.open
        }
        self.carry_out(self.builder.handle(self._clock_ns(), RevokeMeps(tuple(meps))))
        self.acknowledged.revoke(meps, in_slots)
        self._revoke_events(RevokeEvents(message.run, frozenset(meps), frozenset(meps & in_slots), (identity, message)))

    def events_revoked(self, receipt: tuple[bytes, Revoked]) -> None:
        """The files hold nothing of revoked MEPs any more: tell who asked for it."""
        identity, message = receipt
        self._send((identity,), message)

    # Effects of the builder

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Do what the builder asks for; placing bytes is the receiver's part and done before."""
        for effect in effects:
            if isinstance(effect, Reject):
                self._rejected(effect)
            elif isinstance(effect, CloseMep):
                if effect.record.missing:
                    self._incomplete(effect.record)
            elif isinstance(effect, SealSlot):
                slot = self.builder.pool.slots[effect.slot]
                assert self.builder.run is not None
                self._submit(Batch(effect.slot, self.builder.run, tuple(slot.meps), self.builder.floor))
            elif isinstance(effect, GrantCredit):
                assert self.builder.run is not None
                self._send(self.registry.identities(), Credit(self.builder.run, effect.meps))

    def _rejected(self, reject: Reject) -> None:
        left_out = self._limit.due(("reject", reject.reason))
        if left_out is not None:
            log.warning(
                "fragment_rejected", reason=reject.reason, source=reject.source, mep=reject.mep, left_out=left_out
            )
        owner = self.registry.owner_of(reject.source)
        if owner is None:
            return
        run = self.builder.run or 0
        self._counters.nacks_sent += 1
        self._send((owner,), Nack(run, reject.source, reject.mep, reject.reason, reject.resend))
        if reject.mep in self.acknowledged:
            # The feeder has missed the acknowledgement, else it would not have sent this.
            self._send((owner,), Ack(run, ((reject.mep, reject.mep),)))

    def _incomplete(self, mep: MepRecord) -> None:
        left_out = self._limit.due(("incomplete", mep.close_reason))
        if left_out is not None:
            log.warning(
                "mep_incomplete",
                mep=mep.mep,
                reason=mep.close_reason,
                missing=list(mep.missing[:32]),
                n_missing=len(mep.missing),
                left_out=left_out,
            )

    # The pipeline and time

    def batch_done(self, batch: Batch) -> None:
        """Decisions are out and events are safe: acknowledge and take the slot back."""
        meps = [mep.mep for mep in batch.meps]
        self.acknowledged.finish(meps)
        self._counters.meps_acknowledged += len(meps)
        # The credits go first: an acknowledgement takes its MEP from what a feeder counts against them.
        self.carry_out(self.builder.handle(self._clock_ns(), SlotFreed(batch.slot)))
        self._send(self.registry.identities(), Ack(batch.run, tuple(as_ranges(meps))))

    def tick(self, now_ns: int) -> None:
        """Look at deadlines, feeders and the end of the run."""
        self.carry_out(self.builder.handle(now_ns, Tick()))
        self._counters.feeders_connected = self.registry.connected(now_ns)
        if self._counters.fragments_received != self._last_received:
            self._last_received = self._counters.fragments_received
            self._last_traffic_ns = now_ns
        if not self._run_over and self._has_ended(now_ns):
            self._end_run()
        if self._run_over and self.registry.started and self.registry.is_deserted(now_ns):
            self._forget_run()

    def _has_ended(self, now_ns: int) -> bool:
        if not self.registry.all_ended(now_ns) or not self.is_quiet():
            return False
        return self.registry.is_satisfied() or now_ns - self._last_traffic_ns > END_OF_RUN_PATIENCE_NS

    def is_quiet(self) -> bool:
        """True when no MEP is open and every slot is free."""
        return not self.builder.open and all(slot.state is SlotState.FREE for slot in self.builder.pool.slots)

    def _end_run(self) -> None:
        self._run_over = True
        self._summarise(over=True)

    def leave_run(self) -> None:
        """This session ends while the run goes on: write what it has done."""
        if self.registry.started and not self._run_over:
            self._run_over = True
            self._summarise(over=False)

    def _summarise(self, *, over: bool) -> None:
        summary = self._summary.end()
        if not summary["accounting_closes"]:
            self._counters.accounting_broken += 1
            log.critical("accounting_broken", **summary)
        self._finish_run(summary, over)

    def _forget_run(self) -> None:
        self.registry.finish_run()
        self.acknowledged.forget()

    def check_accounts(self) -> bool:
        """Log the accounts; critical, counted and False if a fragment or MEP is in no class."""
        accounts = accounting(self._counters, self.builder)
        if closes(accounts):
            log.info("run_summary", run=self.builder.run, **accounts)
            return True
        self._counters.accounting_broken += 1
        log.critical("accounting_broken", run=self.builder.run, **accounts)
        return False

    # Run control

    def open_runs(self, run: int | None) -> int:
        """Take feeders from now on: of this run, or as configured. Returns the run, 0 for that of the first feeder."""
        if self._starts:
            # Feeders send what they kept of a stopped run only to a session that they do not know.
            self._session = f"{self._session.partition('.')[0]}.{self._starts}"
        self._starts += 1
        taken = self._configured_run if run is None else run
        self.registry.take_run(taken)
        return taken

    def pause(self) -> None:
        """Grant no more until `resume`; what was granted may still come."""
        self.carry_out(self.builder.handle(self._clock_ns(), Drain()))

    def resume(self) -> None:
        """Grant again."""
        self.carry_out(self.builder.handle(self._clock_ns(), Resume()))

    def set_times(self, mep_timeout_ms: int, flush_deadline_ms: int) -> None:
        """Other deadlines from now on."""
        times = SetTimes(mep_timeout_ms * 1_000_000, flush_deadline_ms * 1_000_000)
        self.carry_out(self.builder.handle(self._clock_ns(), times))

    def close_run(self) -> None:
        """The drain is over: leave the run, if there was one, and forget its feeders."""
        if self.registry.started and not self._run_over and self.builder.run is not None:
            self.acknowledged.leave(self.builder.run)
            self.leave_run()
        self.say_goodbye()
        self._forget_run()

    def abandon(self) -> None:
        """Give up MEPs that are open; what is in the pipeline is not waited for."""
        self.carry_out(self.builder.handle(self._clock_ns(), EndRun()))
        self.carry_out(self.builder.handle(self._clock_ns(), Abandon()))
        unacknowledged = sum(len(slot.meps) for slot in self.builder.pool.slots)
        log.critical(
            "abandoned",
            run=self.builder.run,
            meps=self._counters.meps_abandoned,
            fragments=self._counters.fragments_abandoned,
            built_but_unacknowledged_meps=unacknowledged,
        )

    def close_open(self) -> None:
        """Build what is there and open nothing more: the drain is over."""
        self.carry_out(self.builder.handle(self._clock_ns(), EndRun()))
        self.carry_out(self.builder.handle(self._clock_ns(), CloseOpen()))

    def say_goodbye(self) -> None:
        """Tell the feeders that this session ends; they wait for the next one."""
        self._send(self.registry.identities(), Goodbye("session ends"))

    def feeders(self, now_ns: int) -> list[dict[str, object]]:
        """The feeders for /status."""
        return [feeder.describe(now_ns) for feeder in self.registry.feeders()]

    def _send(self, identities: Sequence[bytes], message: ControlMessage) -> None:
        if self._control is not None:
            self._control.send(identities, message)
