"""Latency from the first fragment of a MEP to its decision, by stage, at half the maximum rate of the node.

The node is a separate process, `hltnode serve` on all CPU cores, with the VELO chain and a line that keeps 3 % of the
events; a batch is one MEP of 64 events. `hltnode replay` feeds it over tcp or shared memory: first at the maximum rate,
then at half of it. The times are the metrics of the node (`hltnode_mep_latency_seconds`, `hltnode_mep_stage_seconds`)
for this period; quantiles are interpolated within a bucket.

In the same run, simulated events over tcp also go through a node in latency mode (decisions first, serial, the
collector quiet), and through a bare loop (`benchmarks.service.bare_loop`), both at the same rate.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.lhcb.real_events import geometry_folder
from benchmarks.measure import Result
from benchmarks.readout.real_readout import MIB, TRIGGER, WAYS, numbered_events, process, status_of
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.common.vocabulary import MepStage

EVENTS_PER_MEP = 64
SIMULATED = 512
START_SECONDS = 120.0
WARM_UP_SECONDS = 3.0
GREATEST_SECONDS = 6.0
MEASURED_SECONDS = 20.0
TARGET_P50_MS = 1.0
TARGET_P99_MS = 3.0
WHOLE = "whole"
LATENCY_MODE = """
[latency]
decisions_first = true
serial = true
quiet_collector = true
"""
OF_LATENCY_MODE, OF_BARE_LOOP = "latency mode", "bare loop"
TARGET_P50_RATIO, TARGET_P99_RATIO = 2.0, 4.0
AFTER_COMPUTE = "between compute and decision"
TARGET_AFTER_COMPUTE_MS = 0.3
MS = 1e3


@dataclass(frozen=True, slots=True)
class Counted:
    """A histogram of the node: upper bounds, number of values up to each bound, and sum of all values."""

    bounds: NDArray[np.float64]
    below: NDArray[np.float64]
    total: float

    def since(self, before: "Counted") -> "Counted":
        """The difference to an earlier histogram."""
        return Counted(self.bounds, self.below - before.below, self.total - before.total)

    @property
    def n(self) -> float:
        """Number of values."""
        return float(self.below[-1])

    @property
    def mean(self) -> float:
        """Mean of the values."""
        return self.total / self.n

    def quantile(self, fraction: float) -> float:
        """The quantile of this fraction; the last bound for values above it."""
        rank = fraction * self.n
        bucket = min(bisect_left(self.below, rank), len(self.bounds) - 2)
        low = 0.0 if bucket == 0 else float(self.bounds[bucket - 1])
        before = 0.0 if bucket == 0 else float(self.below[bucket - 1])
        inside = float(self.below[bucket]) - before
        return low + (float(self.bounds[bucket]) - low) * min(1.0, (rank - before) / inside if inside else 1.0)


class ServedNode:
    """A running node."""

    def __init__(self, to: str, control: int, http: int) -> None:
        self.endpoints = ("--to", to, "--control", f"tcp://127.0.0.1:{control}")
        self._http = http

    def times(self) -> dict[str, Counted]:
        """Latency of MEPs since the start, total and by stage."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._http}/metrics", timeout=30) as page:
            text = page.read().decode()
        buckets: dict[str, dict[float, float]] = {stage: {} for stage in (WHOLE, *MepStage)}
        totals = dict.fromkeys(buckets, 0.0)
        for family in text_string_to_metric_families(text):
            if family.name in ("hltnode_mep_latency_seconds", "hltnode_mep_stage_seconds"):
                for sample in family.samples:
                    stage = sample.labels.get("stage", WHOLE)
                    if sample.name.endswith("_bucket"):
                        buckets[stage][float(sample.labels["le"])] = sample.value
                    elif sample.name.endswith("_sum"):
                        totals[stage] = sample.value
        return {
            stage: Counted(np.array(list(of)), np.array(list(of.values())), totals[stage])
            for stage, of in buckets.items()
        }

    def wait_for_start(self, running: "subprocess.Popen[bytes]") -> None:
        """Return when the node accepts feeders. Raises RuntimeError if it does not start."""
        end = time.monotonic() + START_SECONDS
        while (status := status_of(self._http)) is None or status["state"] != "running":
            if running.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the node did not start")
            time.sleep(0.2)

    def processed(self) -> int:
        """Number of events with a decision. Raises RuntimeError if the node does not answer."""
        status = status_of(self._http)
        if status is None:
            raise RuntimeError("the node does not answer")
        return int(status["events"]["processed"])


def write_config(
    directory: Path, geometry: Path, data: int, control: int, decisions: int, http: int, *, first: bool = False
) -> Path:
    """The configuration of the node; `first`: in latency mode."""
    trigger, config = directory / "trigger.toml", directory / "node.toml"
    trigger.write_text(TRIGGER)
    config.write_text(f"""
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
[shared_memory]
socket = "{directory / "memory"}"
[builder]
max_mep_bytes = {16 * MIB}
[pipeline]
slots = 4
slot_bytes = {16 * MIB}
max_events = {EVENTS_PER_MEP}
backend = "cpu"
[geometry]
directory = "{geometry}"
[trigger]
file = "{trigger}"
[output]
directory = "{directory / "output"}"
{'streams = ["error"]' if first else ""}
[http]
port = {http}
{LATENCY_MODE if first else ""}""")
    return config


def fed(node: ServedNode, events: Path, run_number: int, rate: str, seconds: float) -> tuple[float, dict[str, Counted]]:
    """Feed the node at a rate; returns its decided events per second, and the times."""
    feed = ("replay", events, *node.endpoints, "--loop", "--rate", rate, "--run", run_number)
    with process(*feed, "--events-per-mep", EVENTS_PER_MEP):
        end = time.monotonic() + START_SECONDS
        first = node.processed()
        while node.processed() < first + 4 * EVENTS_PER_MEP:
            if time.monotonic() > end:
                raise RuntimeError("no event was processed")
            time.sleep(0.1)
        time.sleep(WARM_UP_SECONDS)
        begin, processed, before = time.monotonic(), node.processed(), node.times()
        time.sleep(seconds)
        after, per_second = node.times(), (node.processed() - processed) / (time.monotonic() - begin)
    return per_second, {stage: after[stage].since(before[stage]) for stage in after}


def measured(
    directory: Path, geometry: Path, events: Path, way: str, wanted: float | None = None
) -> tuple[float, float, dict[str, Counted]]:
    """Maximum rate of a node, the rate of the measurement, and the times at that rate.

    wanted: rate of the measurement, for a node in latency mode; None: half the maximum rate, for a node in usual order.
    """
    data, control, decisions, http = free_ports(4)
    config = write_config(directory, geometry, data, control, decisions, http, first=wanted is not None)
    with process("serve", "--config", config) as running:
        to = f"shm://{directory / 'memory'}" if way == "shm" else f"tcp://127.0.0.1:{data}"
        node = ServedNode(to, control, http)
        node.wait_for_start(running)
        greatest = 0.0
        if wanted is None:
            greatest, _ = fed(node, events, 1, "greatest", GREATEST_SECONDS)
        rate, times = fed(node, events, 2, f"{wanted or greatest / 2:.0f}", MEASURED_SECONDS)
    return greatest, rate, times


def simulated_events(path: Path) -> None:
    """Write simulated events of the whole detector."""
    command = [sys.executable, "-m", "hltnode.daemon", "simulate", "-n", str(SIMULATED), "-o", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def run(shared: Path) -> Iterator[Result]:
    """Measure simulated events, then real events, over tcp and shared memory."""
    geometry = geometry_folder(shared)
    with tempfile.TemporaryDirectory() as temporary:
        for sample in ("simulated", "real"):
            events = Path(temporary) / f"{sample}.mdf"
            if sample == "real":
                numbered_events(shared, events)
            else:
                simulated_events(events)
            for way in WAYS:
                name = f"{sample}, {way}"
                directory = Path(temporary) / name.replace(", ", "_")
                directory.mkdir()
                greatest, rate, times = measured(directory, geometry, events, way)
                yield from _results(name, f"{rate:,.0f} of {greatest:,.0f} events/s", times)
                yield _after_compute(name, (MepStage.GATHER, MepStage.WRITE, MepStage.PUBLISH), times)
                if name == "simulated, tcp":
                    yield from _against_bare_loop(Path(temporary), geometry, events, rate)


def _against_bare_loop(temporary: Path, geometry: Path, events: Path, rate: float) -> Iterator[Result]:
    directory = temporary / "latency_mode"
    directory.mkdir()
    _, found, times = measured(directory, geometry, events, "tcp", rate)
    yield from _results(OF_LATENCY_MODE, f"{found:,.0f} events/s", times)
    yield _after_compute(OF_LATENCY_MODE, (MepStage.GATHER, MepStage.PUBLISH), times)
    command = [sys.executable, "-m", "benchmarks.service.bare_loop", events, geometry, directory / "trigger.toml"]
    arguments = [*map(str, command), f"{rate:.0f}", f"{MEASURED_SECONDS:.0f}"]
    bare = json.loads(subprocess.run(arguments, check=True, stdout=subprocess.PIPE).stdout)
    for percent, target in ((50, TARGET_P50_RATIO), (99, TARGET_P99_RATIO)):
        loop = float(np.percentile(bare, percent))
        yield Result(f"{OF_BARE_LOOP}: p{percent}", loop, "ms", f"{rate:,.0f} events/s", None)
        ratio = times[WHOLE].quantile(percent / 100) * MS / loop
        yield Result(f"{OF_LATENCY_MODE}: p{percent}, ratio", ratio, "", OF_BARE_LOOP, target / ratio, 1.0)


def _after_compute(name: str, stages: Sequence[MepStage], times: dict[str, Counted]) -> Result:
    """The stages between the results of a MEP and its decision."""
    found = sum(times[stage].mean for stage in stages) * MS
    target = f"target {TARGET_AFTER_COMPUTE_MS} ms"
    return Result(f"{name}: {AFTER_COMPUTE}, mean", found, "ms", target, TARGET_AFTER_COMPUTE_MS / found, 1.0)


def _results(name: str, rate: str, times: dict[str, Counted]) -> Iterator[Result]:
    load = f"{rate}, {len(os.sched_getaffinity(0))} cores"
    for fraction, target in ((0.5, TARGET_P50_MS), (0.99, TARGET_P99_MS)):
        found = times[WHOLE].quantile(fraction) * MS
        yield Result(f"{name}: p{100 * fraction:.0f}", found, "ms", load, target / found, 1.0)
    n = f"{times[WHOLE].n:.0f} MEPs"
    yield Result(f"{name}: p99.9", times[WHOLE].quantile(0.999) * MS, "ms", n, None)
    yield Result(f"{name}: greatest, at most", times[WHOLE].quantile(1.0) * MS, "ms", n, None)
    for stage in MepStage:
        of = times[stage]
        quantiles = f"p50 {of.quantile(0.5) * MS:.2f}, p99 {of.quantile(0.99) * MS:.2f} ms"
        yield Result(f"{name}: {stage}, mean", of.mean * MS, "ms", quantiles, None)
    kernels = times[MepStage.COMPUTE].mean
    around = times[WHOLE].mean - kernels
    yield Result(f"{name}: all but {MepStage.COMPUTE}, mean", around * MS, "ms", load, None)


def summary(results: list[Result]) -> dict[str, object]:
    """Quantiles of the slower sample over tcp; quantiles and means of the stages of each sample; in ms.

    `p50_ratio`, `p99_ratio`: a node in latency mode against a bare loop, at the same rate.
    """
    values = {result.name: result.value for result in results}
    samples = sorted({name.partition(":")[0] for name in values})
    figures: dict[str, object] = {
        f"{quantile}_ms": max(values[f"{sample}: {quantile}"] for sample in samples if sample.endswith(WAYS[0]))
        for quantile in ("p50", "p99")
    }
    for quantile in ("p50", "p99"):
        figures[f"{quantile}_ratio"] = values[f"{OF_LATENCY_MODE}: {quantile}, ratio"]
    for sample in samples:
        figures[sample] = {
            name.partition(": ")[2].removesuffix(", mean"): value
            for name, value in values.items()
            if name.startswith(f"{sample}:")
        }
    return figures
