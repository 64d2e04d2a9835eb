"""The current run, the kept runs, and the end of each of them.

A run is known from its first acknowledged MEP until each of its feeders has confirmed its last MEP, or an operator
closes it. While its feeders are away, the node may leave it for another run. Then the run is kept: its feeders get
their acknowledgements, and its missing MEPs are accepted when it is the current run again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import RunEnd
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.run_summary import RunSummary
from hltnode.daemon.event_building.stimuli_and_effects import (
    AcknowledgedBelow,
    CloseOpen,
    Effect,
    EndRun,
    StartRun,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.acknowledgements import Acknowledgements, Ranges
from hltnode.daemon.readout.effect_executor import FeederConnections
from hltnode.daemon.readout.feeder_registry import FeederRegistry
from hltnode.daemon.readout.run_feeders import HelloRefusedError, RunFeeders
from hltnode.protocol.transport.feeder_messages import Hello, RunClosed
from hltnode.protocol.transport.refusals import HelloRefusal

# Interval at which kept runs are checked for their end.
LOOK_NS = 1_000_000_000
# Most closed runs that are remembered, so that feeders that come back late are told.
MAX_CLOSED_RUNS = 1000
# Lines of the builder's history in the log of a broken identity. The summary of the run has all lines.
LOGGED_HISTORY = 32

log = get_logger("run_keeper")


class RunNotClosedError(ValueError):
    """No such run can be closed. The message lists the known runs."""


class RunKeeper:
    """Starts, leaves, ends and closes runs. All calls come from the event loop.

    Args:
        carry_out: carries out effects of the builder.
        finish_run: called with the summary of a run, and True if the run is over or False if it is left and kept.
        confirm: called with a run and an id when every feeder has confirmed all MEPs below the id.
    """

    def __init__(
        self,
        builder: EventBuilder,
        registry: FeederRegistry,
        acknowledgements: Acknowledgements,
        connections: FeederConnections,
        counters: Counters,
        summary: RunSummary,
        carry_out: Callable[[Sequence[Effect]], None],
        finish_run: Callable[[dict[str, Any], bool], None],
        confirm: Callable[[int, int], None],
        clock_ns: Callable[[], int],
    ) -> None:
        self._builder = builder
        self._registry = registry
        self._acknowledgements = acknowledgements
        self._connections = connections
        self._counters = counters
        self._summary = summary
        self._carry_out = carry_out
        self._finish_run = finish_run
        self._confirm = confirm
        self._clock_ns = clock_ns
        self._next_look_ns = 0
        self._closed: dict[int, None] = {}
        self._of_other_tck: dict[int, int] = {}
        self.closing: int | None = None
        """The current run while its last MEPs are computed after an operator has closed it."""

    def remember(self, done: Mapping[int, Ranges], of_other_tck: Mapping[int, int], inputs: Mapping[int, str]) -> None:
        """Add the runs that earlier sessions have kept, with their finished (first, last) ranges.

        of_other_tck: keys of the trigger configurations of those that the present configuration cannot continue.
        inputs: the known inputs.
        """
        self._of_other_tck = dict(of_other_tck)
        self._acknowledgements.remember(done)
        for run in self._acknowledgements.runs():
            self._registry.keep(run).input = inputs.get(run, "")

    # Hellos

    def is_closed(self, run: int) -> bool:
        """True if an operator has closed this run and has not started it again."""
        return run in self._closed

    def place(self, now_ns: int, hello: Hello, *, begins: bool) -> RunFeeders | None:
        """The run of a hello. With `begins`, the hello may start a new run; otherwise None stands for a new run.

        Raises HelloRefusedError: the node accepts another run.
        """
        registry = self._registry
        self._end_if_over(now_ns)
        current = registry.current
        if current is not None and current.run == hello.run:
            return current
        kept = registry.kept.get(hello.run)
        wanted = registry.configured_run in (0, hello.run)
        if begins and wanted and (current is None or (current.is_deserted(now_ns) and self._may_leave)):
            registry.admit(hello.run)
            self.leave()
            return registry.begin(hello.run)
        if kept is not None:
            return kept
        if not begins:
            return None
        if current is None or not wanted:
            taken = registry.configured_run
            raise HelloRefusedError(HelloRefusal.FOREIGN_RUN, f"this node accepts run {taken}, not {hello.run}")
        raise HelloRefusedError(HelloRefusal.RUN_ACTIVE, f"run {current.run} is active, run {hello.run} must wait")

    @property
    def _may_leave(self) -> bool:
        return self._builder.is_idle and self.closing is None

    def follow(self, now_ns: int, run: RunFeeders, *, starts: bool) -> None:
        """Raise the floor of a run after a hello, and start the run (with `starts`) if no feeder is missing.

        Raises HelloRefusedError: the run cannot start.
        """
        if run.raise_floor(now_ns):
            self._acknowledgements.acknowledged_below(run.run, run.floor)
            if run.started:
                self._builder.handle(now_ns, AcknowledgedBelow(run.floor))
            self._confirm(run.run, run.floor)
        start = self._registry.start(now_ns, run) if starts and self.closing is None else None
        if start is None:
            return
        done = self._acknowledgements.ranges(run.run)
        try:
            self._check_tck(run.run)
            effects = self._builder.handle(
                now_ns, StartRun(start.run, start.sources, start.first_mep, start.events_per_mep, done, start.revoked)
            )
        except ValueError as error:
            run.started = False
            self.leave()
            raise HelloRefusedError(HelloRefusal.RUN_CANNOT_START, str(error)) from error
        self._summary.begin()
        log.info(
            "run_started",
            run=start.run,
            sources=len(start.sources),
            first_mep=start.first_mep,
            events_per_mep=start.events_per_mep,
        )
        self._carry_out(effects)

    def _check_tck(self, run: int) -> None:
        if run in self._of_other_tck:
            raise ValueError(
                f"run {run} was decided with TCK 0x{self._of_other_tck[run]:08X}, and the node has another TCK: "
                "start the node with that configuration, or close the run (hltnode ctl close)"
            )

    # Time

    def tick(self, now_ns: int) -> None:
        """Check whether runs are over and whether all feeders have left the current one."""
        self._end_if_over(now_ns)
        current = self._registry.current
        if current is not None and self._may_leave and current.has_been_left(now_ns):
            self.leave()
        if now_ns >= self._next_look_ns:
            self._next_look_ns = now_ns + LOOK_NS
            for run in list(self._registry.kept.values()):
                if run.is_over(now_ns):
                    self._finish_kept(run, RunEnd.CONFIRMED)

    def _end_if_over(self, now_ns: int) -> None:
        current = self._registry.current
        if current is None or not self._builder.is_idle:
            return
        if self.closing is not None:
            self._end_current(current, RunEnd.CLOSED)
        elif current.is_over(now_ns):
            self._end_current(current, RunEnd.CONFIRMED)

    # Ends

    def leave(self) -> None:
        """Leave the current run, if any. It is kept if it has acknowledged MEPs."""
        self._end_if_over(self._clock_ns())
        current = self._registry.current
        if current is None:
            return
        kept = bool(self._acknowledgements.done(current.run))
        if current.started:
            self._stop_building()
            self._summarise(self._summary.end(RunEnd.LEFT), over=not kept)
        if kept:
            log.warning("run_kept", run=current.run)
            self._registry.leave()
        else:
            self._registry.forget(current)

    def close(self, run: int | None) -> str:
        """Close a run on the command of an operator: no MEPs are acknowledged beyond those that the node has now.

        Open MEPs are built incomplete. Without a number the current run is closed, or else the only kept run. Returns a
        text for the operator. Raises RunNotClosedError.
        """
        registry = self._registry
        known = [*([] if registry.current is None else [registry.current.run]), *registry.kept]
        if run is None:
            if not known or (registry.current is None and len(known) > 1):
                raise RunNotClosedError(f"name the run to close: {_listed(known)}")
            run = known[0]
        feeders = registry.find(run)
        if feeders is None:
            raise RunNotClosedError(f"run {run} is not known: {_listed(known)}")
        if not feeders.started:
            # A kept run, or one whose feeders are not complete: the builder has no MEP of it.
            self._finish_kept(feeders, RunEnd.CLOSED)
            return f"run {run} is closed"
        is_open = len(self._builder.open)
        self.closing = run
        now_ns = self._clock_ns()
        self._stop_building()
        self._carry_out(self._builder.handle(now_ns, CloseOpen()))
        self._end_if_over(now_ns)
        return f"run {run} is closed; {is_open} MEPs that were open are built with what is there"

    def reopen(self, run: int) -> None:
        """Accept a closed run again, after an operator has started it."""
        self._closed.pop(run, None)

    def _end_current(self, run: RunFeeders, how: RunEnd) -> None:
        self.closing = None
        if run.started:
            self._stop_building()
            self._forget(run, self._summary.end(how), how)
        else:
            self._finish_kept(run, how)

    def _finish_kept(self, run: RunFeeders, how: RunEnd) -> None:
        self._forget(run, self._summary.end_kept(run.run, how), how)

    def _forget(self, run: RunFeeders, summary: dict[str, Any], how: RunEnd) -> None:
        self._summarise(summary, over=True)
        log.info("run_over", run=run.run, how=how)
        if how is RunEnd.CLOSED:
            self._connections.send(run.identities(), RunClosed(run.run))
            self._closed[run.run] = None
            if len(self._closed) > MAX_CLOSED_RUNS:
                del self._closed[next(iter(self._closed))]
        self._registry.forget(run)
        self._acknowledgements.forget(run.run)
        self._of_other_tck.pop(run.run, None)

    def _stop_building(self) -> None:
        """Have further fragments of the run open no MEP."""
        self._carry_out(self._builder.handle(self._clock_ns(), EndRun()))

    def _summarise(self, summary: dict[str, Any], *, over: bool) -> None:
        if not summary["accounting_closes"]:
            self._report_broken(summary)
            summary["history"] = self._builder.recent_history()
        self._finish_run(summary, over)

    # Accounts

    def check_accounts(self) -> bool:
        """Log the accounts. False, with a critical log line and a count, if a fragment or MEP is in no class."""
        accounts = accounting(self._counters, self._builder)
        if closes(accounts):
            log.info("run_summary", run=self._builder.run, objects=dict(self._counters.objects), **accounts)
            return True
        self._report_broken(accounts)
        return False

    def _report_broken(self, accounts: dict[str, Any]) -> None:
        self._counters.accounting_broken += 1
        history = self._builder.recent_history()[-LOGGED_HISTORY:]
        log.critical("accounting_broken", **{"run": self._builder.run, **accounts}, history=history)


def _listed(runs: Sequence[int]) -> str:
    shown = ", ".join(map(str, runs[:16])) + (f" and {len(runs) - 16} more" if len(runs) > 16 else "")
    return f"known are {shown}" if runs else "no run is known"
