"""Control of the event builder by pipeline, time and run control.

It has no sockets and no clock of its own. The `EffectExecutor` carries out the effects of the builder, and the
`RunKeeper` decides when a run ends. All calls come from the event loop.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.event_building.deadlines import NEVER_NS
from hltnode.daemon.event_building.event_builder import SOON_NS, EventBuilder
from hltnode.daemon.event_building.run_summary import RunSummary
from hltnode.daemon.event_building.stimuli_and_effects import (
    Abandon,
    AwaitedFeeder,
    AwaitFeeders,
    Batch,
    CloseOpen,
    Drain,
    Effect,
    EndRun,
    MepsAcknowledged,
    Resume,
    SetTimes,
    SlotAdvanced,
    SlotFreed,
    Stimulus,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.acknowledgements import Acknowledgements, Ranges
from hltnode.daemon.readout.effect_executor import FeederConnections
from hltnode.daemon.readout.feeder_registry import FeederRegistry
from hltnode.daemon.readout.run_feeders import Feeder, MissingFeeder
from hltnode.daemon.readout.run_keeper import RunKeeper
from hltnode.protocol.transport.feeder_messages import Goodbye, split_ack
from hltnode.protocol.transport.mep_ranges import as_ranges

# Most runs and feeders on the status page.
SHOWN_RUNS = 32
SHOWN_FEEDERS = 64

log = get_logger("builder_control")


class BuilderControl:
    """The builder and its runs, for the other parts of the node.

    Args:
        carry_out: carries out effects of the builder.
        finish_run: called with the summary of a run, and True if the run is over or False if it is left and kept.
        confirm: called with a run and an id when every feeder has confirmed all MEPs below the id. These MEPs can no
            longer be revoked.
    """

    def __init__(
        self,
        builder: EventBuilder,
        registry: FeederRegistry,
        acknowledgements: Acknowledgements,
        connections: FeederConnections,
        counters: Counters,
        carry_out: Callable[[Sequence[Effect]], None],
        finish_run: Callable[[dict[str, Any], bool], None],
        confirm: Callable[[int, int], None],
        *,
        node: str,
        session: str,
        clock_ns: Callable[[], int],
    ) -> None:
        self.builder = builder
        self.registry = registry
        self.acknowledgements = acknowledgements
        self._connections = connections
        self._counters = counters
        self._carry_out = carry_out
        self.runs = RunKeeper(
            builder,
            registry,
            acknowledgements,
            connections,
            counters,
            RunSummary(counters, builder, node=node, session=session, chain=registry.chain),
            carry_out,
            finish_run,
            confirm,
            clock_ns,
        )
        self._configured_run = registry.configured_run
        self._clock_ns = clock_ns
        self.when_opened: list[Callable[[int], None]] = []
        """Called with a run that an operator starts; 0: any run."""
        self.when_freed: list[Callable[[], None]] = []
        """Called after a slot was freed."""
        self._awaited: tuple[int, tuple[AwaitedFeeder, ...]] = (0, ())
        self._silent_from_ns = 0
        """Time at which the next feeder counts as silent if no message comes."""
        self.waiting: str | None = None
        """The feeders without which the current run cannot start or its floor cannot rise; None if it lacks none."""
        self.waiting_since_ns = 0

    def remember(self, done: Mapping[int, Ranges], of_other_tck: Mapping[int, int], inputs: Mapping[int, str]) -> None:
        """Add the MEPs that earlier sessions have finished, as (first, last) ranges of each run. Call it first.

        of_other_tck: runs among them that were decided with another trigger configuration, with its key. inputs: the
        input of each run that has a known one.
        """
        self.runs.remember(done, of_other_tck, inputs)

    def handle(self, stimulus: Stimulus) -> None:
        """Have the builder handle a stimulus, and carry out the effects."""
        self._carry_out(self.builder.handle(self._clock_ns(), stimulus))

    def close_incomplete(self, mep: int) -> None:
        """Close a MEP whose missing fragments will not come, if it is open."""
        self._carry_out(self.builder.close_incomplete(self._clock_ns(), mep))

    def feeder_spoke(self, now_ns: int) -> None:
        """Note a message of a feeder: it may change the awaited feeders or the state of the run."""
        self._silent_from_ns = 0
        self.builder.before_refusals()
        self.builder.wake_by(now_ns + SOON_NS)

    # Pipeline and time

    def slot_advanced(self, advanced: SlotAdvanced) -> None:
        """Note that the pipeline has moved a slot to another state."""
        self.handle(advanced)

    def slot_freed(self, batch: Batch) -> None:
        """Free the slot of a batch whose kept data are gathered."""
        self.handle(SlotFreed(batch.slot))
        for follow in self.when_freed:
            follow()

    def batch_done(self, batch: Batch) -> None:
        """Acknowledge a batch whose decisions are sent and whose events are stored."""
        built = [mep.mep for mep in batch.meps]
        meps = self.acknowledgements.finish(batch.run, built)
        self._counters.meps_acknowledged += len(meps)
        # Credits are sent first: with an acknowledgement a feeder stops counting the MEP against its credits.
        self.handle(MepsAcknowledged(tuple(built)))
        for ack in split_ack(batch.run, as_ranges(meps)):
            self._connections.send(self.registry.identities(batch.run), ack)

    def tick(self, now_ns: int) -> None:
        """Check deadlines, feeders and the end of the run. Read the sockets before the call."""
        current = self.registry.current
        if now_ns >= self._silent_from_ns or self.builder.starts != self._awaited[0]:
            self._silent_from_ns = NEVER_NS if current is None else current.silent_from_ns(now_ns)
            if current is not None and current.started:
                # The builder forgets the awaited feeders at the start of a run.
                awaited = self.builder.starts, current.awaited(now_ns)
                if awaited != self._awaited:
                    self._awaited = awaited
                    self.builder.handle(now_ns, AwaitFeeders(awaited[1]))
        self._carry_out(self.builder.handle(now_ns, Tick()))
        self.runs.tick(now_ns)
        self.builder.wake_by(self._silent_from_ns)

    def note_waiting(self, now_ns: int) -> None:
        """Update `waiting`, and log its begin and its end."""
        current = self.registry.current
        waiting = None if current is None else current.waits_for(now_ns)
        if waiting is not None and self.waiting is None:
            self.waiting_since_ns = now_ns
            log.warning("run_waits", reason=waiting)
        elif waiting is None and self.waiting is not None:
            log.info("run_waits_no_longer", seconds=round(self.waiting_seconds(now_ns), 1))
        self.waiting = waiting

    def waiting_seconds(self, now_ns: int) -> float:
        """Time for which the current run has lacked feeders; 0 if it lacks none."""
        return 0.0 if self.waiting is None else (now_ns - self.waiting_since_ns) / 1e9

    @property
    def feeders_needed(self) -> int:
        """Number of feeders that the current run needs by their announcements; 0 without a run."""
        current = self.registry.current
        return 0 if current is None else current.needed(self._clock_ns())

    # Run control

    def open_runs(self, run: int | None) -> int:
        """Accept feeders of this run, or as configured. Returns the run; 0 stands for the run of the first feeder."""
        taken = self._configured_run if run is None else run
        self.runs.reopen(taken)
        self.registry.configured_run = taken
        for follow in self.when_opened:
            follow(taken)
        return taken

    def close(self, run: int | None) -> str:
        """Close a run on the command of an operator, see `RunKeeper.close`. Raises RunNotClosedError."""
        return self.runs.close(run)

    @property
    def closing(self) -> int | None:
        """The run that is being closed while its last MEPs are computed; None if there is none."""
        return self.runs.closing

    def pause(self) -> None:
        """Grant no credits until `resume`. MEPs for granted credits may still come."""
        self.handle(Drain())

    def resume(self) -> None:
        """Grant credits again."""
        self.handle(Resume())

    def set_times(self, times: SetTimes) -> None:
        """Set other deadlines."""
        self.handle(times)

    def leave_run(self) -> None:
        """Leave the current run, if any, after a drain. Its feeders wait for the next session."""
        self.say_goodbye()
        self.runs.leave()

    def abandon(self) -> None:
        """Drop the open MEPs, and do not wait for those in the pipeline."""
        self.handle(EndRun())
        self.handle(Abandon())
        unacknowledged = len(self.builder.unacknowledged_meps())
        log.critical(
            "abandoned",
            run=self.builder.run,
            meps=self._counters.meps_abandoned,
            fragments=self._counters.fragments_abandoned,
            built_but_unacknowledged_meps=unacknowledged,
        )

    def close_open(self) -> None:
        """Close the open MEPs at the end of a drain, and open no more."""
        self.handle(EndRun())
        self.handle(CloseOpen())

    def say_goodbye(self) -> None:
        """Tell the feeders that this session ends. They wait for the next one."""
        current = self.registry.current
        if current is not None:
            self._connections.send(current.identities(), Goodbye("session ends"))

    # Status

    def check_accounts(self) -> bool:
        """Log the accounts. False, with a critical log line and a count, if a fragment or MEP is in no class."""
        return self.runs.check_accounts()

    def feeders(self, now_ns: int) -> list[dict[str, object]]:
        """The feeders of the current run for /status."""
        current = self.registry.current
        return [] if current is None else [feeder.describe(now_ns) for feeder in current.feeders()]

    def lost_feeders(self, now_ns: int) -> list[Feeder]:
        """The missing feeders of the current run; none once the run is being closed."""
        current = self.registry.current
        if current is None or (current.started and self.builder.closed):
            return []
        return current.missing(now_ns)

    def deserted_runs(self, now_ns: int) -> dict[int, list[MissingFeeder]]:
        """The missing feeders of each kept run that was not over when its last feeder left."""
        missing = {run.run: run.missing_while_kept(now_ns) for run in self.registry.kept.values()}
        return {run: feeders for run, feeders in missing.items() if feeders}

    def kept_runs(self, now_ns: int) -> list[dict[str, object]]:
        """The kept runs, why each is kept, and their feeders, for /status."""
        return [
            {
                "run": run.run,
                "reason": run.reason_to_keep(now_ns),
                "feeders": [feeder.describe(now_ns) for feeder in run.feeders()[:SHOWN_FEEDERS]],
            }
            for run in islice(self.registry.kept.values(), SHOWN_RUNS)
        ]
