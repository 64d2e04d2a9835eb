"""The fraction of the time of a sequence that its selection lines take, with the menu and with 100 lines.

The times are processor times of each kernel on one thread, for the real events; the sequences are measured in turn.
Lines beyond the menu have its types, with other cuts.
"""

import statistics
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.lhcb.real_events import CHAIN, geometry_folder, real_events
from benchmarks.lhcb.sequences import COPIES, LIMITS
from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.lines.line_type import LineType
from hltnode.processing.selection.select_lines import NAME

SEQUENCES = ("forward", "forward_then_matching")
N_LINES = 100
MEPS = 8
TURNS = 9
TARGET = 50.0
"""Minimum ratio of the time of all kernels to that of the lines: lines must take less than 2 %."""


def run(shared: Path) -> Iterator[Result]:
    """Measure the lines of each sequence: medians over the turns."""
    events, geometry = real_events(shared), geometry_folder(shared)
    for name in SEQUENCES:
        meps = [encode_mep(CHAIN.with_sequence(name), events * COPIES, encoding="retina")] * MEPS
        yield from measured(name, geometry, meps)


def measured(name: str, geometry: Path, meps: list[EncodedMep]) -> Iterator[Result]:
    """Rows of one sequence: with the lines of its menu, and with N_LINES."""
    triggers = [CHAIN.load_trigger(None, name), many_lines(name, N_LINES)]
    sequences = [ProfiledSequence(name, geometry, LIMITS, trigger=trigger) for trigger in triggers]
    for sequence in sequences:
        sequence.throughput(meps)
    found: list[list[tuple[float, float]]] = [[] for _ in sequences]
    for _ in range(TURNS):
        for sequence, of_sequence in zip(sequences, found, strict=True):
            kernels = sequence.microseconds_per_kernel(meps)
            of_sequence.append((kernels[NAME], sum(kernels.values())))
    for trigger, of_sequence in zip(triggers, found, strict=True):
        lines = statistics.median(lines for lines, _ in of_sequence)
        whole = statistics.median(whole for _, whole in of_sequence)
        ratio = statistics.median(whole / lines for lines, whole in of_sequence)
        yield Result(f"{name}, {len(trigger.lines)} lines", lines, "us/event", "all kernels", ratio, TARGET)
        yield Result("  all kernels", whole, "us/event", "", None)


def summary(results: list[Result]) -> dict[str, object]:
    """The fraction of all kernels that the lines take (%), by sequence and lines."""
    return {result.name: 100.0 / result.ratio for result in results if result.ratio}


def many_lines(name: str, n: int) -> TriggerConfig:
    """A configuration with n lines: those of the menu, and copies with other cuts."""
    menu = CHAIN.menu.of(name)
    more = (_with_other_cuts(line, round_ // len(menu) + 1) for round_, line in zip(count(), cycle(menu), strict=False))
    types = (*menu, *islice(more, max(0, n - len(menu))))[:n]
    return replace(CHAIN.load_trigger(None, name), lines=tuple(line.line() for line in types), types=types)


def _with_other_cuts(line: LineType, number: int) -> LineType:
    """The line with all cuts looser or tighter."""
    cuts: dict[str, Any] = {
        cut.name: getattr(line, cut.name) * (1.0 + 0.03 * number)
        for cut in fields(line)
        if cut.name not in ("prescale", "postscale", "min_response", "min_dira", "min_response_high_pt")
        and isinstance(getattr(line, cut.name), float)
    }
    return replace(line, name=f"{line.name}_{number}", **cuts)
