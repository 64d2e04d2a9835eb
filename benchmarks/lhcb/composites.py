"""The fraction of the time of a sequence that 20 composites take: those of the menu, and copies with other names.

The times are processor times of each kernel on one thread, for the real events.
"""

import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.lhcb.real_events import CHAIN, geometry_folder, real_events
from benchmarks.lhcb.sequences import COPIES, LIMITS
from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.lines.line_types.composite_lines import COMPOSITES
from hltnode.processing.lhcb.lines.line_types.downstream_composites import COMPOSITES as DOWNSTREAM_COMPOSITES
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.lines.composite import Composite, as_input
from hltnode.processing.selection.lines.inputs import Input
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.make_composite import PREFIX

SEQUENCES = ("forward_then_matching", "hlt1_2026")
N_COMPOSITES = 20
MEPS = 8
TURNS = 5
TARGET = 100.0 / 3.0
"""Minimum ratio of the time of all kernels to that of the composites: they must take less than 3 %."""


def run(shared: Path) -> Iterator[Result]:
    """Measure the composites of each sequence: medians over the turns."""
    events, geometry = real_events(shared), geometry_folder(shared)
    for name in SEQUENCES:
        meps = [encode_mep(CHAIN.with_sequence(name), events * COPIES, encoding="retina")] * MEPS
        sequence = ProfiledSequence(name, geometry, LIMITS, trigger=many_composites(name, N_COMPOSITES))
        sequence.throughput(meps)
        found = []
        for _ in range(TURNS):
            kernels = sequence.microseconds_per_kernel(meps)
            made = sum(time for kernel, time in kernels.items() if kernel.startswith(PREFIX))
            found.append((made, sum(kernels.values())))
        ratio = statistics.median(whole / made for made, whole in found)
        time = statistics.median(made for made, _ in found)
        yield Result(f"{name}, {N_COMPOSITES} composites", time, "us/event", "all kernels", ratio, TARGET)
        yield Result("  all kernels", statistics.median(whole for _, whole in found), "us/event", "", None)


def summary(results: list[Result]) -> dict[str, object]:
    """The fraction of all kernels that the composites take (%), by sequence."""
    return {result.name: 100.0 / result.ratio for result in results if result.ratio}


def many_composites(sequence: str, n: int) -> TriggerConfig:
    """The default lines and a line for each of n composites, those of the menu in turn."""
    default = CHAIN.load_trigger(None, sequence)
    have = set(CHAIN.with_sequence(sequence).sequence.columns)
    usable = [each for each in (*COMPOSITES, *DOWNSTREAM_COMPOSITES) if have.issuperset(each.combination.reads)]
    lines = []
    for i in range(n):
        composite = _copy(usable[i % len(usable)], i // len(usable))
        lines.append(Line(f"Hlt1Made{i}", composite, lambda c: c.chi2 < 4.0))
    return replace(default, lines=(*default.lines, *lines))


def _copy(composite: Composite, number: int) -> Input:
    """The composite under another name."""
    if not number:
        return composite
    made = composite.combination
    return as_input(replace(made, name=f"{made.name}_{number}"))
