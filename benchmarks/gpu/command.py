"""python -m benchmarks gpu [--device N]: all sections in order."""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.device_code import command as device_code
from benchmarks.gpu import samples
from benchmarks.gpu.comparison import comparison
from benchmarks.gpu.correctness import BLOCK_SIZES, correctness
from benchmarks.gpu.kernel_times import kernel_times, measure
from benchmarks.gpu.labelling import beside_cupy
from benchmarks.gpu.memory import Taken, memory
from benchmarks.gpu.report import Report, Section
from benchmarks.gpu.throughput import measure_engine, node_rate, node_throughput, throughput
from benchmarks.gpu.timeline import overlap, record, timeline
from benchmarks.gpu.tools import gpu_tests, sanitizer
from benchmarks.lhcb.real_events import CHAIN, has_real_events, real_file
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.backends.interface import BackendError, DeviceLostError
from hltnode.processing.imaging.chain import CHAIN as IMAGES

FOLDER = Path("build/gpu")
SLOTS = 3
REAL_TIMES, MEPS = 9, 65
"""Repetitions of the seven real events in a MEP, and MEPs in a batch: 4,095 events, a full batch of a node."""
SIMULATED_EVENTS = 63
WHOLE_SEQUENCES = ("forward_then_matching", "forward", "matching", "no_ut", "velo_simd")
WHOLE_EVENTS = 24
"""Compared simulated events of a sequence of the whole HLT1."""
PROFILED, TIMED = 10, 30
ENGINE_MEPS = 2000
NODE_REPEATS = 1_000_000
"""Repetitions of the seven events: more than a node takes during its measurement."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The samples and the numbers of repetitions.

    compared, whole: small samples for the comparison with the CPU, of the VELO chain and of the whole HLT1. measured,
    whole_measured: samples for batches of `meps` and of `whole_meps` MEPs. count: the
    counts of device_code.py by encoding; node: measures a node with the real events. Both are None without the real
    events.
    """

    compared: Sequence[samples.Sample]
    measured: Sequence[samples.Sample]
    count: Callable[[], Mapping[str, device_code.Report]] | None
    node: Callable[[], float] | None
    whole: Sequence[samples.Sample] = ()
    whole_measured: Sequence[samples.Sample] = ()
    block_sizes: Sequence[int | None] = BLOCK_SIZES
    meps: int = MEPS
    profiled: int = PROFILED
    timed: int = TIMED
    engine_meps: int = ENGINE_MEPS


def workload(shared: Path, device: int) -> Workload:
    """Real events if available, else only simulated events."""
    if not has_real_events(shared):
        return Workload(
            samples.simulated(dense=True),
            samples.simulated(SIMULATED_EVENTS),
            None,
            None,
            [samples.whole_hlt1(sequence, WHOLE_EVENTS) for sequence in WHOLE_SEQUENCES],
        )
    return Workload(
        compared=[*samples.simulated(dense=True), *samples.real(shared)],
        measured=samples.real(shared, REAL_TIMES),
        count=partial(device_code.count, shared),
        node=partial(node_rate, real_file(shared, "retina"), backend="cuda", device=device, repeats=NODE_REPEATS),
        whole=[
            *(samples.whole_hlt1(sequence, WHOLE_EVENTS) for sequence in WHOLE_SEQUENCES),
            *(samples.real_whole_hlt1(sequence, shared) for sequence in WHOLE_SEQUENCES),
        ],
        whole_measured=[samples.real_whole_hlt1(sequence, shared, REAL_TIMES) for sequence in WHOLE_SEQUENCES],
    )


def measurements(
    make_backend: Callable[[], CudaBackend],
    sample: samples.Sample,
    counts: device_code.Report | None,
    work: Workload,
) -> list[Section]:
    """Kernel times, overlap, memory, throughput of the engine and the comparison with the estimate."""
    backend = make_backend()
    at_first = backend.free_bytes()
    engine = samples.engine_of(backend, sample, work.meps)
    with_engine = backend.free_bytes()
    workspaces = [engine.create_workspace() for _ in range(SLOTS)]
    taken = Taken(at_first, with_engine, backend.free_bytes())
    for workspace in workspaces:
        samples.fill(workspace, [sample.mep] * work.meps)
    n_events = work.meps * sample.mep.n_events
    seconds = measure(workspaces[0], work.profiled)
    spans = record(backend, workspaces, work.timed)
    slots_rate = len(spans) * n_events / overlap(spans)["seconds"]
    # The slots of the offline runner replace these.
    workspaces.clear()
    del workspace
    engine_rate = measure_engine(engine, sample.mep, work.engine_meps)
    engine.close()
    sections = [
        kernel_times(sample.name, n_events, work.profiled, seconds),
        timeline(sample.name, n_events, spans),
        memory(engine, sample.name, SLOTS, taken),
        throughput(sample.name, slots_rate, engine_rate),
    ]
    if counts is not None:
        sections.append(comparison(sample.name, counts, seconds, slots_rate))
    return sections


def machine(backend: CudaBackend) -> Section:
    """Description of the machine and the software."""
    runtime = backend.device.cupy.cuda.runtime
    facts = {
        "GPU": backend.description,
        "compute capability": backend.device.cupy.cuda.Device(backend.device.ordinal).compute_capability,
        "driver runs CUDA": runtime.driverGetVersion(),
        "CuPy is built for CUDA": runtime.runtimeGetVersion(),
        "processor": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }
    rows = [(what, str(fact)) for what, fact in facts.items()]
    return Section(title="Machine", header=("what", "is"), rows=rows, data=facts)


def attempt(report: Report, what: str, make: Callable[[], Sequence[Section]]) -> bool:
    """Add sections, or one with the reason of a failure.

    False if the device is lost: this process can measure no more.
    """
    begin = time.monotonic()
    lost = False
    try:
        made = make()
    except (BackendError, RuntimeError, OSError) as error:
        made = [Section(title=what, good=False, text=str(error))]
        lost = isinstance(error, DeviceLostError)
    for section in made:
        report.add(section)
        verdict = {True: "passed", False: "FAILED", None: "done"}[section.good]
        print(f"{section.title}: {verdict}", flush=True)
    print(f"  ({what}: {time.monotonic() - begin:.0f} s)", flush=True)
    return not lost


def measure_all(report: Report, make_backend: Callable[..., CudaBackend], work: Workload) -> None:
    """All measurements that this process makes on the GPU."""

    def compare(what: str, compared: Sequence[samples.Sample]) -> Callable[[], list[Section]]:
        return lambda: [correctness(what, lambda size: make_backend(block_size=size), compared, work.block_sizes)]

    counts: dict[str, device_code.Report] = {}

    def count() -> list[Section]:
        counts.update(work.count() if work.count is not None else {})
        return []

    velo, whole = "All kernels at all block sizes against the CPU", "Whole HLT1 at all block sizes against the CPU"
    going = attempt(report, velo, compare(velo, work.compared))
    if going and work.whole:
        going = attempt(report, whole, compare(whole, work.whole))
    attempt(report, "Counts for the estimate", count)
    for sample in (*work.measured, *work.whole_measured):
        # Only the VELO chain is counted; its samples are named by their encoding.
        count_of_sample = counts.get(sample.name.split(", ")[1])
        parts = partial(measurements, make_backend, sample, count_of_sample, work)
        if going:
            going = attempt(report, f"Measurements: {sample.name}", parts)


def main(arguments: Sequence[str], shared: Path) -> int:
    """Exit code: 0 if all passed, 1 if a section failed, 2 without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks gpu", description=__doc__)
    parser.add_argument("--device", type=int, default=0, help="ordinal of the GPU")
    device = parser.parse_args(arguments).device
    make_backend = partial(CudaBackend, CHAIN.kernels, device=device)
    try:
        backend = make_backend()
    except BackendError as error:
        print(f"no GPU to measure on: {error}", file=sys.stderr)
        return 2
    report = Report(FOLDER, "hltnode on a GPU")
    report.add(machine(backend))
    work = workload(shared, device)
    if work.count is None:
        missing = f"{shared} is missing: set HLTNODE_SHARED. There is no comparison with the estimate."
        report.add(Section(title="Real events", good=False, text=missing))
    measure_all(report, make_backend, work)
    attempt(report, "Labelling beside CuPy", lambda: [beside_cupy(partial(CudaBackend, IMAGES.kernels, device=device))])
    if work.node is not None:
        measure_node = work.node
        attempt(report, "Node", lambda: [node_throughput(measure_node())])
    attempt(report, "pytest -m gpu", lambda: [gpu_tests(device)])
    attempt(report, "compute-sanitizer", lambda: [sanitizer(device)])
    print(f"{FOLDER / 'report.md'}: {'all passed' if report.good else 'something FAILED'}")
    return 0 if report.good else 1
