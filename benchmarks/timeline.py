"""`python -m benchmarks profile [--timeline]`: what each thread of the CPU back end does during batches of real events.

Without --timeline: the processor time of each kernel per event. With it: the start and end of each batch, of each
kernel on each block and thread, and the host's work between batches; and where the threads idle:

- *measured*, by the steady clock. On a busy machine a thread also waits for a processor, and others wait for it.
- *modelled* from the processor times alone, as on a machine with a free processor for each thread. Blocks are taken in
  their order by the thread that is free first; each stage ends with its last block (a barrier); a stage of one block
  runs on one thread. The host's work takes a processor from the threads when they use all of them.
"""

import heapq
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.lhcb.real_events import CHAIN, geometry_folder, real_events
from benchmarks.profile import ProfiledSequence
from hltnode.daemon.commands.result_files import ResultParser
from hltnode.processing.framework.backends.cpu import WHOLE_PROGRAM, WHOLE_STAGE, CpuQueue
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner, encode_meps
from hltnode.processing.framework.workspace import Workspace

EVENTS_PER_MEP = 64
INPUT_BYTES_PER_EVENT = 128 << 10
HOST = "host"


class RecordedRunner(OfflineRunner):
    """An offline runner that records when it fills workspaces."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.spans: list[tuple[int, int, int]] = []
        """Begin, end and processor time of each fill in ns."""

    def fill(self, workspace: Workspace, batch: Sequence[EncodedMep]) -> None:
        """Fill a workspace and record it."""
        begin, cpu = time.perf_counter_ns(), time.thread_time_ns()
        super().fill(workspace, batch)
        self.spans.append((begin, time.perf_counter_ns(), time.thread_time_ns() - cpu))


def makespan(costs: Iterable[float], threads: int) -> float:
    """Time of blocks that threads take in their order."""
    free = [0.0] * threads
    for cost in costs:
        heapq.heapreplace(free, free[0] + cost)
    return max(free)


def timeline_of(
    parts: Sequence[tuple[list[str], NDArray[np.void]]],
    host: Sequence[tuple[int, int, int]],
    threads: int,
    events: int,
) -> dict[str, Any]:
    """The timeline of some batches.

    parts: kernels and RECORD[records] of each program (CpuQueue.take_records); host: begin, end and processor time of
    the host's work in ns. Times of the result are in microseconds, from the first record on.

    Raises ValueError without records.
    """
    if not parts:
        raise ValueError("a timeline needs at least one batch")
    origin = min(int(records["begin"].min()) for _, records in parts)
    origin = min([origin, *(begin for begin, _, _ in host)])
    batches, spans = [], []
    stages: dict[int, Any] = {}
    measured = {"kernels": 0.0, "waits_for_a_processor": 0.0, "barriers": 0.0, "between_batches": 0.0}
    last_end: int | None = None
    modelled = total_cpu = 0.0
    for kernels, records in parts:
        (whole,) = records[records["step"] == WHOLE_PROGRAM]
        batches.append([_us(whole["begin"], origin), _us(whole["end"], origin)])
        if last_end is not None:
            measured["between_batches"] += threads * max(0, int(whole["begin"]) - last_end)
        last_end = int(whole["end"])
        steps = records[records["step"] >= 0]
        span = (steps["end"] - steps["begin"]).astype(float)
        measured["kernels"] += float(steps["cpu"].sum())
        waits = float(np.maximum(span - steps["cpu"], 0.0).sum())
        measured["waits_for_a_processor"] += waits
        program = threads * float(whole["end"] - whole["begin"])
        measured["barriers"] += max(0.0, program - float(steps["cpu"].sum()) - waits)
        total_cpu += float(steps["cpu"].sum())
        spans += [
            [int(row["thread"]), kernels[int(row["stage"])], _us(row["begin"], origin), _us(row["end"], origin)]
            for row in records[records["step"] == WHOLE_STAGE]
        ]
        for first in np.unique(steps["stage"]).tolist():
            of_stage = steps[steps["stage"] == first]
            of_stage = of_stage[np.argsort(of_stage["begin"], kind="stable")]
            # A block is taken at the start of its first kernel.
            blocks, place = np.unique(of_stage["block"], return_index=True)
            order = np.argsort(place)
            costs = np.bincount(np.searchsorted(blocks, of_stage["block"]), of_stage["cpu"])[order]
            took = makespan(costs.tolist(), threads)
            modelled += took
            found = stages.setdefault(
                first,
                {"first": kernels[first], "kernels": len(np.unique(of_stage["step"])), "blocks": 0, "cpu_us": 0.0,
                 "modelled_idle_us": 0.0},
            )  # fmt: skip
            found["blocks"] += len(blocks)
            found["cpu_us"] += float(costs.sum()) / 1e3
            found["modelled_idle_us"] += (threads * took - float(costs.sum())) / 1e3
    host_cpu = float(sum(cpu for *_, cpu in host))
    one_thread = max(total_cpu, host_cpu)
    alone = threads * modelled
    return {
        "threads": threads,
        "events": events,
        "batches": len(batches),
        "barriers_of_a_batch": sum(len(np.unique(records[records["step"] >= 0]["stage"])) for _, records in parts)
        / len(batches),
        "us_per_event": {
            "kernels": total_cpu / events / 1e3,
            "host": host_cpu / events / 1e3,
            "idle_at_barriers_modelled": (alone - total_cpu) / events / 1e3,
        },
        "modelled_speedup": {
            "kernels_alone": total_cpu / modelled,
            "with_host_on_these_processors": one_thread / ((alone + host_cpu) / threads),
        },
        "measured_us": {name: value / 1e3 for name, value in measured.items()},
        "stages": [{**stage, "stage": first} for first, stage in sorted(stages.items())],
        "batch_spans": batches,
        "thread_spans": spans,
        "host_spans": [[_us(begin, origin), _us(end, origin), cpu / 1e3] for begin, end, cpu in host],
        "kernels": kernel_sums(parts, events),
    }


def kernel_sums(parts: Sequence[tuple[list[str], NDArray[np.void]]], events: int) -> dict[str, list[float]]:
    """Processor time per event of each kernel on each thread, in microseconds."""
    threads = 1 + max(int(records["thread"].max()) for _, records in parts)
    sums: dict[str, NDArray[np.float64]] = {}
    for kernels, records in parts:
        steps = records[records["step"] >= 0]
        for step in np.unique(steps["step"]).tolist():
            of_step = steps[steps["step"] == step]
            found = sums.setdefault(kernels[step], np.zeros(threads))
            found += np.bincount(of_step["thread"], of_step["cpu"], threads) / events / 1e3
    return {name: of_threads.tolist() for name, of_threads in sums.items()}


def _us(at: int, origin: int) -> float:
    return (int(at) - origin) / 1e3


def recorded(shared: Path, name: str, threads: int, batch_events: int, batches: int) -> dict[str, Any]:
    """The timeline of some batches of the real events, after a batch that is not recorded."""
    limits = BatchLimits(events=batch_events, input_bytes=batch_events * INPUT_BYTES_PER_EVENT)
    sequence = ProfiledSequence(name, geometry_folder(shared), limits, threads)
    real = real_events(shared)
    per_mep = min(EVENTS_PER_MEP, batch_events)
    events = [real[i % len(real)] for i in range(per_mep)]
    (mep,) = encode_meps(CHAIN.with_sequence(name), events, per_mep, "retina")
    meps = [mep] * (batch_events // per_mep)
    runner = RecordedRunner(sequence.engine)
    runner.warm_up(meps)
    queues = [workspace.queue for workspace in runner.workspaces]

    def of_queues(work: Callable[[CpuQueue], Any]) -> list[Any]:
        assert all(isinstance(queue, CpuQueue) for queue in queues)
        return [work(queue) for queue in queues if isinstance(queue, CpuQueue)]

    runner.spans.clear()
    of_queues(lambda queue: setattr(queue, "record", True))
    n = sum(batch.workspace.n_events for batch in runner.run(meps * batches))
    taken = [part for parts in of_queues(CpuQueue.take_records) for part in parts]
    taken.sort(key=lambda part: int(part[1]["begin"].min()))
    sequence.engine.close()
    found = timeline_of(taken, runner.spans, threads, n)
    return {"sequence": name, "events_of_a_batch": batch_events, **found}


def show(found: dict[str, Any], console: Console) -> None:
    """The result as tables."""
    table = Table("stage, from kernel", "kernels", "blocks", "us/event", "idle, modelled", title="stages")
    for stage in found["stages"]:
        table.add_row(
            stage["first"],
            str(stage["kernels"]),
            str(stage["blocks"]),
            f"{stage['cpu_us'] / found['events']:.3f}",
            f"{stage['modelled_idle_us'] / found['events']:.3f}",
        )
    console.print(table)
    per_event = found["us_per_event"]
    speedup = found["modelled_speedup"]
    console.print(
        f"{found['sequence']}, {found['batches']} batches of {found['events_of_a_batch']} events, "
        f"{found['threads']} threads, {found['barriers_of_a_batch']:.0f} barriers a batch: kernels "
        f"{per_event['kernels']:.1f} us/event, host {per_event['host']:.2f}, idle at barriers "
        f"{per_event['idle_at_barriers_modelled']:.2f} (modelled)"
    )
    console.print(
        f"speed-up over one thread (modelled): {speedup['kernels_alone']:.3f} of the kernels alone, "
        f"{speedup['with_host_on_these_processors']:.3f} with the host's work on the same processors"
    )
    total = sum(found["measured_us"].values())
    console.print(
        "measured: " + ", ".join(f"{name} {100 * value / total:.1f} %" for name, value in found["measured_us"].items())
    )


def page(found: dict[str, Any]) -> str:
    """The timeline as an HTML page."""
    # A local import: only this page needs matplotlib.
    from matplotlib.figure import Figure

    from hltnode.processing.framework.page_templates import render
    from hltnode.processing.offline.pages.elements import Section, drawn
    from hltnode.processing.offline.pages.tables import Cell, Row
    from hltnode.processing.offline.pages.tables import Table as PageTable
    from hltnode.processing.offline.pages.template_folder import TEMPLATES

    figure = Figure(figsize=(14, 1.2 + 0.6 * (found["threads"] + 2)))
    axis = figure.subplots()
    axis.broken_barh([(begin, end - begin) for begin, end, _ in found["host_spans"]], (-0.4, 0.8), color="tab:orange")
    names = [stage["first"] for stage in found["stages"]]
    for thread in range(found["threads"]):
        of_thread = [span for span in found["thread_spans"] if span[0] == thread]
        axis.broken_barh(
            [(begin, end - begin) for _, _, begin, end in of_thread],
            (thread + 0.6, 0.8),
            color=[f"C{names.index(name) % 10}" for _, name, *_ in of_thread],
        )
    axis.broken_barh(
        [(begin, end - begin) for begin, end in found["batch_spans"]], (found["threads"] + 0.6, 0.8), color="tab:gray"
    )
    rows = [HOST, *(f"thread {thread}" for thread in range(found["threads"])), "batches"]
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xlabel("time [us]")
    table = PageTable(
        "Stages",
        ["stage, from kernel", "kernels", "blocks", "processor time [us/event]", "idle, modelled [us/event]"],
        [
            Row(
                [
                    stage["first"],
                    str(stage["kernels"]),
                    str(stage["blocks"]),
                    Cell(f"{stage['cpu_us'] / found['events']:.3f}", stage["cpu_us"]),
                    Cell(f"{stage['modelled_idle_us'] / found['events']:.3f}", stage["modelled_idle_us"]),
                ]
            )
            for stage in found["stages"]
        ],
    )  # fmt: skip
    numbers = [(f"{value:.3f}", name.replace("_", " ")) for name, value in found["modelled_speedup"].items()]
    return render(
        "selection.html",
        TEMPLATES,
        title=f"Timeline of {found['sequence']}",
        note="A colour is a stage: kernels that run on one block one after the other. A white gap is idle time.",
        warning=None,
        inputs=f"{found['batches']} batches of {found['events_of_a_batch']} events, {found['threads']} threads.",
        numbers=numbers,
        found=[table],
        drawn=[Section("Threads", [drawn(figure, "what each thread does")])],
        text=json.dumps({name: found[name] for name in ("us_per_event", "modelled_speedup", "measured_us")}, indent=1),
    )


def main(arguments: list[str], shared: Path) -> None:
    """Run the command."""
    parser = ResultParser(prog="python -m benchmarks profile", description="Where the time of a sequence goes.")
    parser.add_argument("--timeline", action="store_true", help="show when threads work and idle")
    parser.add_argument("--sequence", default="forward", help="sequence to run")
    parser.add_argument("--threads", type=int, default=2, help="threads of the CPU back end")
    parser.add_argument("--events", type=int, default=512, help="events of a batch")
    parser.add_argument("--batches", type=int, default=6, help="batches to record")
    parser.add_result_file("--json", help="the timeline")
    parser.add_result_file("--html", help="the timeline as a page")
    chosen = parser.parse_args(arguments)
    if min(chosen.threads, chosen.events, chosen.batches) < 1:
        parser.error("expected at least one thread, event and batch")
    if (chosen.json or chosen.html) and not chosen.timeline:
        parser.error("expected --timeline with --json and --html")
    console = Console(width=120)
    found = recorded(shared, chosen.sequence, chosen.threads, chosen.events, chosen.batches)
    if chosen.timeline:
        show(found, console)
    else:
        table = Table("kernel", "us/event", title=chosen.sequence)
        for name, of_threads in sorted(found["kernels"].items(), key=lambda item: -sum(item[1])):
            table.add_row(name, f"{sum(of_threads):.3f}")
        console.print(table)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found) + "\n")
    if chosen.html is not None:
        chosen.html.write_text(page(found))
