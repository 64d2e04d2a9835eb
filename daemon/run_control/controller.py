"""Executes the commands of operators. `state_machine` decides whether a command is legal.

A command is answered immediately with the new state. Warm-up and drain continue in the background; when they end, the
state changes again. All code runs in the event loop.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import Outcome
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.builder_control import BuilderControl
from hltnode.daemon.readout.run_keeper import RunNotClosedError
from hltnode.daemon.run_control.state_machine import (
    IllegalTransitionError,
    InternalTrigger,
    RunStateMachine,
    next_state,
)
from hltnode.protocol.transport.run_control_messages import CommandName, RunState

# If no fragment arrives for this time during a drain, the feeders have used all their credits.
DRAIN_QUIET_SECONDS = 0.25
# Limit for the feeders to use their credits, and the same again for the back end to finish.
DRAIN_SECONDS = 10.0
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("controller")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Whether a command was executed, the state after it, and a text for the operator."""

    ok: bool
    state: RunState
    text: str


class CommandFailedError(RuntimeError):
    """A legal command failed; nothing was changed."""


class RunController:
    """The only owner of the run control state.

    Args:
        warm_up: prepares the back end, once; an exception is a failure of the node.
        reload: applies the configuration file and returns a text with the changes; raises CommandFailedError.
        summary: the answer to the status command, as JSON.
        failed: called with the reason when the node cannot continue.
        held_seconds: longest time that computed MEPs wait for a combiner; a drain waits as much longer.
    """

    def __init__(
        self,
        control: BuilderControl,
        counters: Counters,
        *,
        warm_up: Callable[[], Awaitable[None]],
        reload: Callable[[], str],
        summary: Callable[[], str],
        failed: Callable[[str], None],
        held_seconds: float = 0.0,
    ) -> None:
        self._control = control
        self._machine = RunStateMachine()
        self._counters = counters
        self._warm_up = warm_up
        self._reload = reload
        self._summary = summary
        self._failed = failed
        self._held_seconds = held_seconds
        self._job: asyncio.Task[None] | None = None
        self._ticked = asyncio.Event()
        self._abandoned = False
        self._limit = RateLimit(LOG_INTERVAL_NS, time.monotonic_ns)

    @property
    def state(self) -> RunState:
        """State of the run control."""
        return self._machine.state

    def execute(self, name: CommandName, run: int | None = None, origin: str = "node") -> CommandResult:
        """Execute a command; a refused or failed command returns its reason and never raises.

        `origin` is the way and the address of its sender, for the log.
        """
        before = self.state
        try:
            # First: an illegal command must have no effect.
            next_state(before, name)
            text = self._carry_out(name, run)
        except (IllegalTransitionError, CommandFailedError, RunNotClosedError) as error:
            self._counters.operation.commands[name, Outcome.REFUSED] += 1
            if (left_out := self._limit.due(name)) is not None:
                refusal = {"command": name, "state": before, "reason": str(error), "origin": origin}
                log.warning("command_refused", **refusal, left_out=left_out)
            return CommandResult(False, before, str(error))
        after = self._machine.apply(name)
        self._counters.operation.commands[name, Outcome.OK] += 1
        if name is not CommandName.STATUS:
            log.info("command", command=name, state=after, was=before, run=run, origin=origin)
        return CommandResult(True, after, text)

    def _carry_out(self, name: CommandName, run: int | None) -> str:
        if run is not None and name not in (CommandName.START, CommandName.CLOSE):
            raise CommandFailedError(f"{name} takes no run number")
        match name:
            case CommandName.CONFIGURE:
                self._job = asyncio.get_running_loop().create_task(self._configure_job())
                return "the back end is warming up"
            case CommandName.START:
                taken = self._control.open_runs(run)
                return f"accepts run {taken}" if taken else "accepts the run of the first feeder"
            case CommandName.PAUSE:
                self._control.pause()
                return "no new credits; MEPs of granted credits are still built"
            case CommandName.RESUME:
                self._control.resume()
                return "credits are granted again"
            case CommandName.STOP:
                self._job = asyncio.get_running_loop().create_task(self._stop_job())
                return "draining"
            case CommandName.CLOSE:
                return self._control.close(run)
            case CommandName.RELOAD:
                return self._reload()
            case CommandName.STATUS:
                return self._summary()

    def tick(self) -> None:
        """Let a running drain check its progress. Every change of the event builder requests such a tick."""
        self._ticked.set()

    def fail(self) -> None:
        """Enter the state ERROR: the node cannot continue."""
        self._machine.apply(InternalTrigger.FAILED)
        self._ticked.set()

    async def configure_now(self) -> None:
        """Execute CONFIGURE for autostart: waits for the warm-up and raises its errors."""
        self._machine.apply(CommandName.CONFIGURE)
        await self._warm_up()
        self._machine.apply(InternalTrigger.WARMED_UP)

    async def _configure_job(self) -> None:
        try:
            await self._warm_up()
        except Exception as error:
            # A driver may raise any exception. Without a back end the node cannot work, and a restart may help.
            self._failed(f"warm-up of the back end failed: {error}")
            return
        self._machine.apply(InternalTrigger.WARMED_UP)
        log.info("configured")

    async def _stop_job(self) -> None:
        await self._drain()
        if self.state is RunState.DRAINING:
            self._control.leave_run()
            self._machine.apply(InternalTrigger.DRAINED)
            log.info("run_stopped")

    async def shut_down(self) -> None:
        """Drain the node: afterwards no MEP is open or being computed. `abandon` ends this early."""
        if self.state in (RunState.RUNNING, RunState.PAUSED):
            self._carry_out(CommandName.STOP, None)
            self._machine.apply(CommandName.STOP)
        if self._job is not None:
            await asyncio.wait((self._job,))

    def abandon(self) -> None:
        """Force the stop: open MEPs count as abandoned, and no further MEP is acknowledged."""
        if not self._abandoned:
            self._abandoned = True
            self._control.abandon()
            self._ticked.set()
            if self._job is not None and self.state is not RunState.DRAINING:
                # Only a warm-up must be cancelled; a drain ends on `_ticked`.
                self._job.cancel()

    @property
    def abandoned(self) -> bool:
        """True after `abandon`."""
        return self._abandoned

    async def _drain(self) -> None:
        """Wait for the MEPs of granted credits, then build, compute and acknowledge all of them."""
        control, counters = self._control, self._counters
        control.pause()
        start = quiet_since = time.monotonic()
        received = -1
        while self._goes_on() and (now := time.monotonic()) < start + DRAIN_SECONDS:
            if counters.fragments_received != received or control.builder.open:
                received = counters.fragments_received
                quiet_since = now
            if now - quiet_since >= DRAIN_QUIET_SECONDS:
                break
            await self._next_tick(quiet_since + DRAIN_QUIET_SECONDS - now)
        if not self._goes_on():
            return
        control.close_open()
        end = start + 2 * DRAIN_SECONDS + self._held_seconds
        while self._goes_on() and not control.builder.is_idle:
            if (left := end - time.monotonic()) <= 0:
                self._failed("the pipeline did not finish while draining")
                return
            await self._next_tick(left)

    async def _next_tick(self, seconds: float) -> None:
        """Return after the next tick or after `seconds`."""
        self._ticked.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ticked.wait()

    def _goes_on(self) -> bool:
        return self.state is RunState.DRAINING and not self.abandoned
