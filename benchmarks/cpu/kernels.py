"""The CPU form of each kernel against the common kernel, in turn in one process."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cpu import worker
from benchmarks.cpu.comparison import RefusedError, work_of
from benchmarks.cpu.forms import FORMS, Form, Sample
from benchmarks.lhcb.real_events import CHAIN
from hltnode.processing.framework.event_files import read_events


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """Minimum processor time per event in us, of the kernels of a chain with a CPU form."""

    form: str
    sample: str
    target: str
    common_us: Mapping[str, float]
    form_us: Mapping[str, float]


def kernel_times(form: Form, sample: Sample, turns: int, instructions: str | None) -> KernelTimes:
    """Run the chain of this revision with and without forms, every other turn in the other order.

    Raises RefusedError for an instruction set that is not available.
    """
    fields: dict[str, Any] = work_of(form, sample, form.sequence, instructions=instructions)
    with _pinned(fields.pop("pinned")):
        work = worker.Work(**fields)
        events = [list(banks) for file in work.files for banks in read_events(Path(file))] * work.copies
        try:
            batches = [worker.present(work, events[: worker.EVENTS], common=common) for common in (True, False)]
        except LookupError as error:
            raise RefusedError(str(error)) from error
        least: list[dict[str, float]] = [{}, {}]
        for turn in range(turns + 1):
            for which in (0, 1) if turn % 2 else (1, 0):
                measured = worker.measure(batches[which], batches=1, profile=True)
                if turn == 0:
                    continue
                for name, seconds in measured["algorithms"].items():
                    us = 1e6 * seconds / measured["events"]
                    least[which][name] = min(least[which].get(name, us), us)
    names = [it.name for it in CHAIN.with_sequence(form.sequence).sequence if it.cpu_form is not None]
    common, own = ({name: of[name] for name in names} for of in least)
    return KernelTimes(form.name, sample.name, batches[0].target, common, own)


def chains() -> list[Form]:
    """Forms with different work in this revision."""
    found: dict[tuple[str, str], Form] = {}
    for form in FORMS:
        found.setdefault((form.sequence, form.encoding), form)
    return list(found.values())


@contextmanager
def _pinned(processors: set[int]) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
