"""python -m benchmarks cpu --against REVISION: this CPU back end against another revision's.

Both revisions compute the same events in turn, in processes of one thread on one processor. Ratios use processor time,
because other work on the machine affects it least. The profile by algorithm is a separate run: a clock reading costs
0.2 to 0.6 us per algorithm and event, and the minimum is subtracted. --instructions selects the kernels of another
instruction set than the best of this machine. Three options need no other revision: --growth fits the time of an event
against its hits, --kernels compares CPU forms of kernels with the common kernels, and --scan measures events per second
over the events of a batch and the threads (scan.py).
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.cpu.comparison import Compared, RefusedError, compare
from benchmarks.cpu.forms import FORMS, Form, Sample, real, simulated
from benchmarks.cpu.growth import COLLISIONS, DENSE_FROM, DENSE_TARGET, TARGET, Growth, growth
from benchmarks.cpu.kernels import KernelTimes, chains, kernel_times
from benchmarks.cpu.revision import RevisionError, built
from benchmarks.cpu.scan import BATCH_EVENTS, MEP_EVENTS, figures_of, scan, table_of
from benchmarks.lhcb.real_events import CHAIN
from hltnode.daemon.commands.result_files import ResultParser
from hltnode.processing.framework.backends.interface import BackendError

TURNS = 15
LEAST = 0.4
"""Time per event in us: algorithms below it in both revisions are not printed."""
TARGETS = {"velo_superpixel": 2.5, "velo_retina": 1.6, "forward": 0.45}
"""Targets of the ratios on the real events, against 0.1.0."""


def main(arguments: Sequence[str], shared: Path) -> int:
    """Exit code: 0; 1 if a measurement was refused; 2 if nothing could be measured."""
    parser = ResultParser(prog="python -m benchmarks cpu", description=__doc__)
    parser.add_argument("--against", metavar="REVISION", help="a version (0.1.0) or a commit")
    parser.add_argument("--growth", action="store_true", help="fit the time of simulated events against their hits")
    parser.add_argument("--kernels", action="store_true", help="CPU forms of kernels against the common kernels")
    parser.add_argument("--scan", action="store_true", help="events per second over events of a batch and threads")
    parser.add_argument("--sequence", default="velo", choices=CHAIN.sequences, help="of --scan; default: velo")
    parser.add_argument("--events", type=int, nargs="+", default=BATCH_EVENTS, help="of --scan: multiples of 64")
    parser.add_argument("--threads", type=int, nargs="+", help="of --scan; default: 1, 2, 4, ... of this machine")
    parser.add_result_file("--json", help="ratios and all measurements")
    parser.add_result_file("--plot", help="time by algorithm, as a picture; needs matplotlib")
    parser.add_argument("--instructions", metavar="SET", help="avx512, avx2 or baseline; default: best of this machine")
    parser.add_argument("--turns", type=int, default=TURNS, help="turns of each comparison, at least 2")
    parser.add_argument("--form", choices=[form.name for form in FORMS], action="append", help="default: all")
    parser.add_argument("--sample", choices=["real", "simulated"], action="append", help="default: both")
    chosen = parser.parse_args(arguments)
    if chosen.turns < 2:
        parser.error("--turns: at least 2")
    console = Console(width=120)
    if chosen.growth:
        return _grow(chosen, console)
    if any(n < MEP_EVENTS or n % MEP_EVENTS for n in chosen.events) or min(chosen.threads or (1,)) < 1:
        parser.error(f"--events: multiples of {MEP_EVENTS}; --threads: at least 1")
    if chosen.scan:
        return _scan(chosen, shared, console)
    if chosen.against is None and not chosen.kernels:
        parser.error("--against REVISION, --growth, --kernels or --scan")
    try:
        samples = [
            {"real": lambda: real(shared), "simulated": simulated}[name]()
            for name in chosen.sample or ("real", "simulated")
        ]
        if chosen.kernels:
            return _compare_kernels(chosen, samples, console)
        other = built(chosen.against)
    except (RevisionError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    forms = [form for form in FORMS if form.name in (chosen.form or [it.name for it in FORMS])]
    found: list[Compared] = []
    refused: list[dict[str, str]] = []
    for sample in samples:
        for form in forms:
            try:
                found.append(compare(form, sample, other, chosen.turns, chosen.instructions))
            except RefusedError as error:
                if form.optional:
                    continue
                refused.append({"form": form.name, "sample": sample.name, "refused": str(error)})
                console.print(f"{form.name}, {sample.name}: refused: {error}")
                continue
            console.print(_table(found[-1], chosen.against))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(_figures(found, refused, other.commit, forms, samples), indent=1) + "\n")
    if chosen.plot is not None:
        from benchmarks.cpu.plot import plot

        plot(found, chosen.against, chosen.plot)
    return 1 if refused else 0


def _compare_kernels(chosen: argparse.Namespace, samples: Sequence[Sample], console: Console) -> int:
    found: list[KernelTimes] = []
    for sample in samples:
        for form in chains():
            if chosen.form and form.name not in chosen.form:
                continue
            try:
                times = kernel_times(form, sample, chosen.turns, chosen.instructions)
            except RefusedError as error:
                print(error, file=sys.stderr)
                return 2
            found.append(times)
            table = Table("us per event", "common", "for the CPU", "ratio")
            table.title = f"{times.form}, {times.sample} events, {times.target}"
            for name, common in sorted(times.common_us.items(), key=lambda item: -item[1]):
                own = times.form_us[name]
                if max(common, own) >= LEAST:
                    table.add_row(name, f"{common:.1f}", f"{own:.1f}", f"{common / own:.2f}")
            console.print(table)
    if chosen.json is not None:
        machine = {"processor": platform.processor() or platform.machine(), "load": os.getloadavg()[0]}
        chosen.json.write_text(
            json.dumps({"machine": machine, "details": [asdict(it) for it in found]}, indent=1) + "\n"
        )
    return 0


def _scan(chosen: argparse.Namespace, shared: Path, console: Console) -> int:
    try:
        points = scan(chosen.sequence, shared, chosen.turns, chosen.events, chosen.threads)
    except (FileNotFoundError, BackendError) as error:
        print(error, file=sys.stderr)
        return 2
    console.print(table_of(chosen.sequence, points))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(figures_of(chosen.sequence, points), indent=1) + "\n")
    return 0


def _grow(chosen: argparse.Namespace, console: Console) -> int:
    found: list[Growth] = []
    for form in FORMS:
        if form.name not in chosen.form if chosen.form else form.optional:
            continue
        try:
            found.append(growth(form, chosen.turns, chosen.instructions))
        except RefusedError as error:
            print(error, file=sys.stderr)
            return 2
        console.print(_growth_table(found[-1]))
    if chosen.json is not None:
        figures = {it.form: asdict(it) for it in found}
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def _growth_table(found: Growth) -> Table:
    table = Table("", "us per event", "hits", "exponent", title=f"{found.form}, simulated events")
    for nu, hits, us in zip(COLLISIONS, found.hits, found.cpu_us, strict=True):
        table.add_row(f"nu = {nu:g}", f"{us:.1f}", f"{hits:.0f}", "")
    table.add_row("all", "", "", f"{found.exponent:.2f}, asked: {TARGET}")
    table.add_row(f"from nu = {DENSE_FROM:g}", "", "", f"{found.exponent_7_40:.2f}, asked: {DENSE_TARGET}")
    for name, (us, of_it) in sorted(found.algorithms.items(), key=lambda item: -item[1][0]):
        if us >= LEAST:
            table.add_row(f"  {name}, nu = {COLLISIONS[-1]:g}", f"{us:.1f}", "", f"{of_it:.2f}")
    return table


def _table(compared: Compared, against: str) -> Table:
    table = Table(
        "us per event", "this", against, "ratio", title=f"{compared.form}, {compared.sample} events, {compared.target}"
    )

    def row(what: str, here: float, there: float, ratio: str) -> None:
        table.add_row(what, f"{here:.1f}", f"{there:.1f}", ratio)

    cpu, wall = compared.ratio, compared.wall_ratio
    spread = f"{cpu.median:.2f} ({cpu.lower:.2f} to {cpu.upper:.2f})"
    if compared.sample == "real" and compared.form in TARGETS:
        spread += f", to reach: {TARGETS[compared.form]}"
    row("processor time", compared.cpu_us.median, compared.baseline_cpu_us.median, spread)
    spread = f"{wall.median:.2f} ({wall.lower:.2f} to {wall.upper:.2f})"
    row("wall time", compared.wall_us.median, compared.baseline_wall_us.median, spread)
    ours, theirs = compared.algorithms_us, compared.baseline_algorithms_us
    for name in sorted({*ours, *theirs}, key=lambda it: -max(ours.get(it, 0.0), theirs.get(it, 0.0))):
        here, there = ours.get(name, 0.0), theirs.get(name, 0.0)
        if max(here, there) >= LEAST:
            row(f"  {name}", here, there, f"{there / here:.2f}" if here and there else "")
    return table


def _figures(
    found: Sequence[Compared],
    refused: Sequence[dict[str, str]],
    commit: str | None,
    forms: Sequence[Form],
    samples: Sequence[Sample],
) -> dict[str, object]:
    """The ratio on the first sample by form, None if it was refused; then all measurements."""
    main_ratios = {it.form: it.ratio.median for it in found if it.sample == samples[0].name}
    figures: dict[str, object] = {
        form.name: {"ratio": main_ratios.get(form.name)}
        for form in forms
        if form.name in main_ratios or not form.optional
    }
    machine = {"processor": platform.processor() or platform.machine(), "load": os.getloadavg()[0]}
    details = [asdict(it) for it in found]
    return {**figures, "against": commit, "machine": machine, "details": details, "refused": list(refused)}
