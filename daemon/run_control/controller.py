"""Carries out the commands of operators: the table says whether, this module does it to coordinator and back end.

A command is answered at once, with the state that it leads to; warm-up and drain go on behind it, and their end moves
the state again. Everything happens in the event loop.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import Outcome
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.feeder_protocol import RunCoordinator
from hltnode.daemon.run_control.state_machine import IllegalTransitionError, InternalTrigger, next_state
from hltnode.protocol.transport.control import CommandName, RunState

# Nothing new for so long while draining: the feeders have sent what they had credits for.
DRAIN_QUIET_SECONDS = 0.25
# For the feeders to send what they had credits for, and again for the back end to finish.
DRAIN_SECONDS = 10.0
POLL_SECONDS = 0.005
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("controller")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Whether a command was obeyed, the state after it, and a text for the operator."""

    ok: bool
    state: RunState
    text: str


class CommandFailedError(RuntimeError):
    """A legal command that could not be carried out, with nothing changed."""


class RunController:
    """Owner of the state of the run control.

    Args:
        warm_up: makes the back end ready, once; an exception is a failure of the node.
        reload: applies the configuration file and says what changed; raises CommandFailedError.
        summary: what status tells, as JSON.
        failed: called with the reason when the node cannot go on.
    """

    def __init__(
        self,
        coordinator: RunCoordinator,
        counters: Counters,
        *,
        warm_up: Callable[[], Awaitable[None]],
        reload: Callable[[], str],
        summary: Callable[[], str],
        failed: Callable[[str], None],
    ) -> None:
        self._coordinator = coordinator
        self._counters = counters
        self._warm_up = warm_up
        self._reload = reload
        self._summary = summary
        self._failed = failed
        self._job: asyncio.Task[None] | None = None
        self._abandoned = False
        self._limit = RateLimit(LOG_INTERVAL_NS, time.monotonic_ns)

    @property
    def state(self) -> RunState:
        """Where the node is."""
        return self._counters.operation.state

    def execute(self, name: CommandName, run: int | None = None) -> CommandResult:
        """Obey a command, or say why not; never raises for what an operator can do wrong."""
        before = self.state
        try:
            after = next_state(before, name)
            text = self._carry_out(name, run)
        except (IllegalTransitionError, CommandFailedError) as error:
            self._counters.operation.commands[name, Outcome.REFUSED] += 1
            if (left_out := self._limit.due(name)) is not None:
                log.warning("command_refused", command=name, state=before, reason=str(error), left_out=left_out)
            return CommandResult(False, before, str(error))
        self._move(after)
        self._counters.operation.commands[name, Outcome.OK] += 1
        if name is not CommandName.STATUS:
            log.info("command", command=name, state=after, was=before, run=run)
        return CommandResult(True, after, text)

    def _carry_out(self, name: CommandName, run: int | None) -> str:
        if run is not None and name is not CommandName.START:
            raise CommandFailedError(f"{name} takes no run number")
        match name:
            case CommandName.CONFIGURE:
                self._job = asyncio.get_running_loop().create_task(self._configure_job())
                return "the back end warms up"
            case CommandName.START:
                taken = self._coordinator.open_runs(run)
                return f"takes run {taken}" if taken else "takes the run of the first feeder"
            case CommandName.PAUSE:
                self._coordinator.pause()
                return "no more credits; what was granted is still built"
            case CommandName.RESUME:
                self._coordinator.resume()
                return "credits are granted again"
            case CommandName.STOP:
                self._job = asyncio.get_running_loop().create_task(self._stop_job())
                return "draining"
            case CommandName.RELOAD:
                return self._reload()
            case CommandName.STATUS:
                return self._summary()

    def fail(self) -> None:
        """The node cannot go on."""
        self._move(next_state(self.state, InternalTrigger.FAILED))

    def _move(self, state: RunState) -> None:
        self._counters.operation.state = state
        self._coordinator.node_state = state

    async def configure_now(self) -> None:
        """CONFIGURE of an autostart: waits, and raises what the back end raises."""
        self._move(next_state(self.state, CommandName.CONFIGURE))
        await self._warm_up()
        self._move(next_state(self.state, InternalTrigger.WARMED_UP))

    async def _configure_job(self) -> None:
        try:
            await self._warm_up()
        except Exception as error:
            # Whatever a driver throws: without its back end the node is useless, and a restart may help.
            self._failed(f"the back end does not warm up: {error}")
            return
        self._move(next_state(self.state, InternalTrigger.WARMED_UP))
        log.info("configured")

    async def _stop_job(self) -> None:
        await self._drain()
        if self.state is RunState.DRAINING:
            self._coordinator.close_run()
            self._move(next_state(self.state, InternalTrigger.DRAINED))
            log.info("run_stopped")

    async def shut_down(self) -> None:
        """From any state to one in which nothing is on its way any more; `abandon` cuts it short."""
        if self.state in (RunState.RUNNING, RunState.PAUSED):
            self._carry_out(CommandName.STOP, None)
            self._move(next_state(self.state, CommandName.STOP))
        if self._job is not None:
            await self._job

    def abandon(self) -> None:
        """Give up what is not done: open MEPs are counted as abandoned, nothing more is acknowledged."""
        if not self._abandoned:
            self._abandoned = True
            self._coordinator.abandon()

    @property
    def abandoned(self) -> bool:
        """True after `abandon`."""
        return self._abandoned

    async def _drain(self) -> None:
        """Let what was granted come, then build, compute and acknowledge everything."""
        coordinator, counters = self._coordinator, self._counters
        coordinator.pause()
        start = quiet_since = time.monotonic()
        received = -1
        while self._goes_on() and (now := time.monotonic()) < start + DRAIN_SECONDS:
            if counters.fragments_received != received or coordinator.builder.open:
                received = counters.fragments_received
                quiet_since = now
            if now - quiet_since >= DRAIN_QUIET_SECONDS:
                break
            await asyncio.sleep(POLL_SECONDS)
        if not self._goes_on():
            return
        coordinator.close_open()
        while self._goes_on() and not coordinator.is_quiet():
            if time.monotonic() >= start + 2 * DRAIN_SECONDS:
                self._failed("the pipeline did not finish while draining")
            await asyncio.sleep(POLL_SECONDS)

    def _goes_on(self) -> bool:
        return self.state is RunState.DRAINING and not self.abandoned
