"""Progress of a command on a terminal: events that are done, of how many, their rate, and the remaining time.

It goes to standard error, so that a redirected output has only results, and is shown only on a terminal.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hltnode.daemon.commands.common import console

COUNT_SECONDS = 0.5
"""Longest time for counting the events in advance: an MDF file of 1 GB on a local disk takes 0.05 s."""
NAMED_SECONDS = 0.5
"""A compilation of this length is named after its end, too."""


@contextmanager
def event_progress(title: str, total: int | None, unit: str = "events") -> Iterator[Callable[[int], None]]:
    """Show the events that are done; yields the function that adds to them.

    total: number of all events; None if it is not known, then only the rate is shown. unit: what is counted.
    """
    if not console.is_terminal:
        yield lambda _n: None
        return
    # Local import: rich costs 50 ms, and without a terminal nothing is shown.
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(TextColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f} {unit}/s")

    counted = (BarColumn(), MofNCompleteColumn()) if total is not None else (TextColumn("{task.completed}"),)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), *counted, Rate(""), TimeElapsedColumn())
    remaining = (TextColumn("left"), TimeRemainingColumn()) if total is not None else ()
    with Progress(*columns, *remaining, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda n: progress.advance(task, n)


def count_events(files: Sequence[Path], times: int = 1) -> int | None:
    """The number of events of some files for a bar, `times` times; None without a terminal, or if it takes long.

    A file that cannot be read has None: the command itself names the reason.
    """
    if not console.is_terminal:
        return None
    from hltnode.processing.framework.event_files import DamageLog, EventFileError, event_counts

    end = time.monotonic() + COUNT_SECONDS
    events = 0
    try:
        for path in files:
            for part in event_counts(path, DamageLog()):
                events += part.n_events
                if time.monotonic() > end:
                    return None
    except EventFileError:
        return None
    return events * times


@contextmanager
def named_compilation(cached: bool) -> Iterator[None]:
    """Name a compilation of kernels on a terminal, and its time afterwards."""
    if not console.is_terminal:
        yield
        return
    begin = time.monotonic()
    console.print("compiling kernels ...", highlight=False)
    yield
    seconds = time.monotonic() - begin
    if seconds >= NAMED_SECONDS:
        after = "cached afterwards" if cached else "not cached: each start compiles them again"
        console.print(f"compiling kernels ... {seconds:.0f} s, {after}", highlight=False)
