"""Tells a user that a compiler runs: it takes seconds, once for each set of lines and each version."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Observer = Callable[[bool], AbstractContextManager[object]]
"""Is called for each compilation with whether its result is cached; the context lasts as long as the compiler runs."""

_observers: list[Observer] = []


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Call an observer for each compilation in this process, until the end of the context."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def compiling(*, cached: bool) -> AbstractContextManager[object]:
    """The context of a compilation. cached: whether its result is kept for the next start."""
    return _observers[-1](cached) if _observers else nullcontext()
