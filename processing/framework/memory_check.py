"""Checks the free memory against a plan before the allocation, and finds the largest batch that fits."""

from dataclasses import replace

from hltnode.processing.framework.backends.interface import Backend, BackendError
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import MemoryPlan, plan_memory

_FRACTIONS = 4096
"""Step of the search for the largest batch, as a fraction of the batch that does not fit."""

FEWEST_SLOTS = 2
"""Minimum number of slots: one fills while the other computes."""

MARGIN = 0.9
"""Fraction of the free memory that a suggestion uses; the process needs the rest."""


def require_memory(
    backend: Backend,
    plan: MemoryPlan,
    slots: int,
    *,
    direct: bool = False,
    beside: tuple[MemoryPlan, int] | None = None,
) -> None:
    """Compare the memory of `slots` slots with the free memory; constants are already allocated.

    direct: one slot of requests is for a direct workspace, with the memory of a thread of its own. beside: a plan of
    the same back end, and its number of slots, which are not allocated yet.

    Raises BackendError with both numbers, and with a number of slots and a batch that would fit.
    """
    threads = backend.threads + direct
    taken = 0 if beside is None else _bytes_beside(plan, *beside, backend.threads)
    free = max(0, backend.free_bytes() - taken)
    needed = plan.total_bytes(slots, threads)
    if needed <= free:
        return
    limits = plan.limits
    message = (
        f"{_slots(slots)} of {limits.input_bytes} bytes and {limits.events} events need {_size(needed)} on the back "
        f"end {backend.name} ({_size(plan.slot_bytes)} per slot), {_size(free)} are free"
        f"{f' beside the {_size(taken)} of the run' if taken else ''}"
    )
    advice: list[str] = []
    usable = int(MARGIN * free)
    fitting = max(0, usable - threads * plan.thread.nbytes) // plan.slot_bytes
    if fitting >= FEWEST_SLOTS and not direct:
        advice.append(f"pipeline.slots = {fitting}")
    smaller = largest_batch(plan, slots, threads, usable)
    if smaller is not None:
        key = "requests.max_bytes" if direct else "pipeline.slot_bytes"
        advice.append(f"{key} = {smaller.input_bytes} with {key.split('.')[0]}.max_events = {smaller.events}")
    raise BackendError(f"{message}: {' or '.join(advice) + ' would fit' if advice else 'no smaller batch would fit'}")


def _bytes_beside(plan: MemoryPlan, other: MemoryPlan, slots: int, threads: int) -> int:
    """Bytes of the slots of another plan, without memory of threads that both plans share."""
    shared = threads * plan.thread.nbytes if plan.thread.nbytes <= other.thread.nbytes else 0
    return other.total_bytes(slots, threads) - shared


def largest_batch(plan: MemoryPlan, slots: int, threads: int, free: int) -> BatchLimits | None:
    """The largest fraction of the plan's batch so that slots and threads fit in `free` bytes; None if none fits."""
    best = None
    low, high = 1, _FRACTIONS - 1
    while low <= high:
        middle = (low + high) // 2
        limits = replace(
            plan.limits,
            events=max(1, plan.limits.events * middle // _FRACTIONS),
            input_bytes=plan.limits.input_bytes * middle // _FRACTIONS,
        )
        smaller = plan_memory(plan.sequence, limits, retain=plan.retained, fuse_events=plan.fuse_events)
        if smaller.total_bytes(slots, threads) <= free:
            best, low = limits, middle + 1
        else:
            high = middle - 1
    return best


def _slots(number: int) -> str:
    return f"{number} slot{'' if number == 1 else 's'}"


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**30:.2f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.1f} MiB"
