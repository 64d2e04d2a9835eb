"""Carries out the commands of operators: the table says whether, this module acts on feeder protocol and back end.

A command is answered at once, with the state that it leads to; warm-up and drain go on behind it, and their end moves
the state again. Everything happens in the event loop.
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

# Without a new fragment for this time while draining, the feeders have sent what they had credits for.
DRAIN_QUIET_SECONDS = 0.25
# For the feeders to send what they had credits for, and again for the back end to finish.
DRAIN_SECONDS = 10.0
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("controller")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Whether a command was carried out, the state after it, and a text for the operator."""

    ok: bool
    state: RunState
    text: str


class CommandFailedError(RuntimeError):
    """A legal command that could not be carried out, with nothing changed."""


class RunController:
    """Moves the run control, and is the only one that does.

    Args:
        warm_up: makes the back end ready, once; an exception is a failure of the node.
        reload: applies the configuration file and says what changed; raises CommandFailedError.
        summary: the answer to the status command, as JSON.
        failed: called with the reason when the node cannot go on.
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
    ) -> None:
        self._control = control
        self._machine = RunStateMachine()
        self._counters = counters
        self._warm_up = warm_up
        self._reload = reload
        self._summary = summary
        self._failed = failed
        self._job: asyncio.Task[None] | None = None
        self._ticked = asyncio.Event()
        self._abandoned = False
        self._limit = RateLimit(LOG_INTERVAL_NS, time.monotonic_ns)

    @property
    def state(self) -> RunState:
        """State of the run control."""
        return self._machine.state

    def execute(self, name: CommandName, run: int | None = None) -> CommandResult:
        """Carry out a command, or say why not; never raises for a mistake of an operator."""
        before = self.state
        try:
            # Before it is carried out: nothing is done for a command that is not legal.
            next_state(before, name)
            text = self._carry_out(name, run)
        except (IllegalTransitionError, CommandFailedError, RunNotClosedError) as error:
            self._counters.operation.commands[name, Outcome.REFUSED] += 1
            if (left_out := self._limit.due(name)) is not None:
                log.warning("command_refused", command=name, state=before, reason=str(error), left_out=left_out)
            return CommandResult(False, before, str(error))
        after = self._machine.apply(name)
        self._counters.operation.commands[name, Outcome.OK] += 1
        if name is not CommandName.STATUS:
            log.info("command", command=name, state=after, was=before, run=run)
        return CommandResult(True, after, text)

    def _carry_out(self, name: CommandName, run: int | None) -> str:
        if run is not None and name not in (CommandName.START, CommandName.CLOSE):
            raise CommandFailedError(f"{name} takes no run number")
        match name:
            case CommandName.CONFIGURE:
                self._job = asyncio.get_running_loop().create_task(self._configure_job())
                return "the back end warms up"
            case CommandName.START:
                taken = self._control.open_runs(run)
                return f"takes run {taken}" if taken else "takes the run of the first feeder"
            case CommandName.PAUSE:
                self._control.pause()
                return "no more credits; what was granted is still built"
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
        """A drain looks whether it gets on; to be called with each tick, which every change of the builder asks for."""
        self._ticked.set()

    def fail(self) -> None:
        """The node cannot go on."""
        self._machine.apply(InternalTrigger.FAILED)
        self._ticked.set()

    async def configure_now(self) -> None:
        """CONFIGURE of an autostart: waits, and raises what the back end raises."""
        self._machine.apply(CommandName.CONFIGURE)
        await self._warm_up()
        self._machine.apply(InternalTrigger.WARMED_UP)

    async def _configure_job(self) -> None:
        try:
            await self._warm_up()
        except Exception as error:
            # Any exception of a driver: without its back end the node is useless, and a restart may help.
            self._failed(f"the back end does not warm up: {error}")
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
        """From any state to one in which no MEP is open or being computed; `abandon` cuts it short."""
        if self.state in (RunState.RUNNING, RunState.PAUSED):
            self._carry_out(CommandName.STOP, None)
            self._machine.apply(CommandName.STOP)
        if self._job is not None:
            await asyncio.wait((self._job,))

    def abandon(self) -> None:
        """Force the stop: open MEPs are counted as abandoned, nothing more is acknowledged."""
        if not self._abandoned:
            self._abandoned = True
            self._control.abandon()
            self._ticked.set()
            if self._job is not None and self.state is not RunState.DRAINING:
                # The warm-up; a drain ends by itself.
                self._job.cancel()

    @property
    def abandoned(self) -> bool:
        """True after `abandon`."""
        return self._abandoned

    async def _drain(self) -> None:
        """Wait for what was granted, then build, compute and acknowledge everything."""
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
        end = start + 2 * DRAIN_SECONDS
        while self._goes_on() and not control.builder.is_idle:
            if (left := end - time.monotonic()) <= 0:
                self._failed("the pipeline did not finish while draining")
                return
            await self._next_tick(left)

    async def _next_tick(self, seconds: float) -> None:
        """Return after the next tick, or after this time."""
        self._ticked.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ticked.wait()

    def _goes_on(self) -> bool:
        return self.state is RunState.DRAINING and not self.abandoned
