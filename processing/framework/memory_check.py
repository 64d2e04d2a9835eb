"""Whether what a plan asks for is free, before anything is allocated; and the largest batch that would fit."""

from dataclasses import replace

from hltnode.processing.framework.backends.interface import Backend, BackendError
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import MemoryPlan, plan_memory

_FRACTIONS = 4096
"""The largest batch is found in steps of this part of the one that does not fit."""

FEWEST_SLOTS = 2
"""One fills while the other computes."""

MARGIN = 0.9
"""Of the free memory, what a suggestion uses: the process itself needs some."""


def require_memory(backend: Backend, plan: MemoryPlan, slots: int) -> None:
    """Compare what `slots` slots need with the memory that is free; constants lie in theirs already.

    Raises BackendError with both numbers, and with the number of slots and the batch that would fit.
    """
    free = backend.free_bytes()
    needed = plan.total_bytes(slots, backend.threads)
    if needed <= free:
        return
    limits = plan.limits
    message = (
        f"{_slots(slots)} of {limits.input_bytes} bytes and {limits.events} events need {_size(needed)} on the back "
        f"end {backend.name} ({_size(plan.slot_bytes)} a slot), {_size(free)} are free"
    )
    advice: list[str] = []
    usable = int(MARGIN * free)
    fitting = max(0, usable - backend.threads * plan.thread.nbytes) // plan.slot_bytes
    if fitting >= FEWEST_SLOTS:
        advice.append(f"pipeline.slots = {fitting}")
    smaller = largest_batch(backend, plan, slots, usable)
    if smaller is not None:
        advice.append(f"pipeline.slot_bytes = {smaller.input_bytes} with pipeline.max_events = {smaller.events}")
    raise BackendError(f"{message}: {' or '.join(advice) + ' would fit' if advice else 'no smaller batch would fit'}")


def largest_batch(backend: Backend, plan: MemoryPlan, slots: int, free: int) -> BatchLimits | None:
    """The largest fraction of the plan's batch with which `slots` slots fit in `free` bytes; None if none does."""
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
        if smaller.total_bytes(slots, backend.threads) <= free:
            best, low = limits, middle + 1
        else:
            high = middle - 1
    return best


def _slots(number: int) -> str:
    return f"{number} slot{'' if number == 1 else 's'}"


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**30:.2f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.1f} MiB"
