"""Progress of a call, for the functions that take `progress`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = bool | Callable[[int], None]
"""True shows a progress bar; a function is called with the number of events since its last call."""


@contextmanager
def shown_progress(progress: Progress, title: str = "", total: int | None = None) -> Iterator[Callable[[int], None]]:
    """What is called with the number of events since its last call. total: number of all events, if it is known."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda _: None
    else:
        # Local import: rich costs 50 ms, and without a bar nothing is shown.
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        counted = (TextColumn("{task.completed} events"),) if total is None else (BarColumn(), MofNCompleteColumn())
        columns = (SpinnerColumn(), TextColumn("{task.description}"), *counted, TimeElapsedColumn())
        with Bars(*columns, transient=True) as bars:
            task = bars.add_task(title, total=total)
            yield lambda n: bars.advance(task, n)
