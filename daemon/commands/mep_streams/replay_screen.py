"""The screen of a replay: progress, rate, backlog, and missing nodes."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

from hltnode.daemon.commands.common import counted
from hltnode.daemon.replay.replaying import ReplayState

# Period of the messages about a missing node, and of the lines on an output that is no terminal.
MISSING_SECONDS = 5.0
LINE_SECONDS = 10.0
# Time over which rates are averaged.
RATE_SECONDS = 3.0


class ReplayScreen:
    """Shows the states of a replay on a console: a bar on a terminal, otherwise a line from time to time.

    `n_events`: events of the whole replay, None if it never ends.
    """

    def __init__(self, console: Console, n_events: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=n_events)
        self._past: deque[tuple[float, ReplayState]] = deque()
        self._missing_since: dict[str, float] = {}
        self._named_at: dict[str, float] = {}
        self._line_at = clock() + LINE_SECONDS
        self._was_paused = False

    def __enter__(self) -> "ReplayScreen":
        self._progress.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, state: ReplayState) -> None:
        """Show a state; call this a few times per second."""
        now = self._clock()
        self._past.append((now, state))
        while now - self._past[0][0] > RATE_SECONDS:
            self._past.popleft()
        self._name_missing(now, state)
        # At the end, several processes pause to agree on the last MEP; this pause cannot be resumed.
        if not state.is_ending and state.is_paused != self._was_paused:
            self._was_paused = state.is_paused
            self.say("paused: resume with the space bar or SIGCONT" if state.is_paused else "goes on")
        text = self._describe(state)
        self._progress.update(self._task, completed=state.events, description=text)
        if not self._console.is_terminal and now >= self._line_at:
            self._line_at = now + LINE_SECONDS
            self.say(text)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _describe(self, state: ReplayState) -> str:
        begin, first = self._past[0]
        seconds = max(self._past[-1][0] - begin, 1e-9)
        rate = (state.events - first.events) / seconds
        megabytes = (state.bytes - first.bytes) / seconds * 1e-6
        if state.is_paused and not state.is_ending:
            word = "paused"
        else:
            word = "waits" if state.missing else "ends" if state.is_ending else "sends"
        return (
            f"{word} {counted(state.events, 'event')}, {rate:.0f}/s, {megabytes:.0f} MB/s, backlog {state.backlog} of "
            f"{counted(state.credits, 'MEP')}"
        )

    def _name_missing(self, now: float, state: ReplayState) -> None:
        for endpoint in state.missing:
            since = self._missing_since.setdefault(endpoint, now)
            if now - self._named_at.get(endpoint, since) >= MISSING_SECONDS:
                self._named_at[endpoint] = now
                self.say(f"waiting for the node at {endpoint}: no welcome for {now - since:.0f} s")
            self._named_at.setdefault(endpoint, now)
        for endpoint in self._missing_since.keys() - set(state.missing):
            if now - self._missing_since.pop(endpoint) >= MISSING_SECONDS:
                self.say(f"the node at {endpoint} answers")
            del self._named_at[endpoint]


def join_states(states: Sequence[ReplayState]) -> ReplayState:
    """The joint state of several processes that replay the same MEPs, each with its sources.

    Their states are from different moments, so backlog and credits are those of the process with the largest backlog.
    """
    behind = max(states, key=lambda state: state.backlog)
    return ReplayState(
        meps=min(state.meps for state in states),
        events=min(state.events for state in states),
        bytes=sum(state.bytes for state in states),
        backlog=behind.backlog,
        credits=behind.credits,
        is_paused=any(state.is_paused for state in states),
        is_ending=any(state.is_ending for state in states),
        missing=tuple(sorted({endpoint for state in states for endpoint in state.missing})),
    )
