"""Counts the cost of the kernels of ALICE's TPC on a GPU without using one.

`python -m benchmarks device_code --chain alice_tpc [--json FILE] [--picture FILE]`

The PTX of each sequence is executed on slices of one simulated event. The sequences differ in the schedule of the
tracklet constructor only, and have equal tracks. *Active lanes* is the mean share of the 32 lanes that execute an
instruction. *Busy threads* also counts threads that wait: executed instructions of all threads, divided by the
instructions on the longest path of their block times its threads. --picture draws what each thread of one block does.

The estimate (estimate.py) is for a batch that fills the GPU. It is an estimate, not a measurement.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.device_code import command as device_code
from benchmarks.device_code.estimate import FAST, H100, SLOW, estimate
from hltnode.daemon.commands.result_files import ResultParser
from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.offline.simulation.sample import SampleName, TpcOptions, TpcSimulation, event_of
from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.offline.chain_tools import SampleRequest
from tests.processing.alice import toy_events
from tests.processing.chains.reference import run_reference
from tests.ptx.chain import Launched
from tests.ptx.machine import TRACED_BARRIER

SCHEDULES = {
    "canonical": "slice_tracks_canonical",
    "fixed": "slice_tracks",
    "pool": "slice_tracks_pool",
    "row blocks": "slice_tracks_row_blocks",
}
"""Sequences by the name of their schedule."""
_SHARED = {algorithm.name for algorithm in CHAIN.sequences["slice_tracks"].algorithms} - {"tpc_construct_tracklets"}
PICTURE_ROWS = 400


def is_constructor(algorithm: Algorithm) -> bool:
    """Whether an algorithm belongs to the constructor, which each schedule has of its own."""
    return algorithm.name not in _SHARED


def simulated_slices(sample: SampleName, seed: int, n_slices: int) -> EncodedMep:
    """The first slices of an event. Every source of the event is in it."""
    request = SampleRequest(seed=seed, run=1)
    event = event_of(TpcSimulation().sample(request, TpcOptions(sample=sample)), 0)
    slices = {number: event.clusters[event.slice_number == number] for number in range(n_slices)}
    return toy_events.mep_of([toy_events.event_of(slices, 48)])


def busy_threads(launches: Sequence[Launched]) -> float:
    """Instructions of all threads, divided by those on the path of their block times its threads."""
    lanes = sum(int(launched.record.counts["lanes"].sum()) for launched in launches)
    places = sum(int(launched.record.block_paths.sum()) * launched.record.threads for launched in launches)
    return lanes / places


def active_in_steps(launches: Sequence[Launched]) -> float:
    """Mean share of the lanes of a warp that take part in a step of a tracklet, which has square roots."""
    lanes = executions = 0
    for launched in launches:
        roots = [text.startswith("sqrt") for text in launched.record.program.texts]
        lanes += int(launched.record.counts["lanes"][roots].sum())
        executions += int(launched.record.counts["executions"][roots].sum())
    return lanes / executions / 32


def activity(launches: Sequence[Launched], rows: int = PICTURE_ROWS) -> NDArray[np.float64]:
    """[row][thread]: share of the time in which a thread of the traced block executes instructions.

    Time goes downwards, in instructions on the longest path of the block: a warp that comes to a barrier early waits.
    """
    threads = launches[0].record.threads
    intervals: list[list[NDArray[np.uint32]]] = []
    for launched in launches:
        words = launched.record.trace
        for part in np.split(words, np.flatnonzero(words == TRACED_BARRIER)):
            executed = part[part != TRACED_BARRIER]
            warps = executed >> np.uint64(32)
            intervals.append([executed[warps == warp].astype(np.uint32) for warp in range(-(-threads // 32))])
    length = sum(max(len(lanes) for lanes in interval) for interval in intervals)
    found = np.zeros((rows, -(-threads // 32) * 32))
    begin = 0
    for interval in intervals:
        for warp, lanes in enumerate(interval):
            row = (begin + np.arange(len(lanes))) * rows // length
            for lane in range(32):
                found[:, 32 * warp + lane] += np.bincount(row, lanes >> np.uint32(lane) & 1, rows)
        begin += max(len(lanes) for lanes in interval)
    return found[:, :threads] * rows / length


def draw(pictures: Mapping[str, NDArray[np.float64]], lengths: Mapping[str, int], path: Path) -> None:
    """One picture for each schedule; their heights have one scale of time."""
    figure = Figure(figsize=(9.0, 5.2), layout="constrained")
    longest = max(lengths.values())
    axes = figure.subplots(1, len(pictures), sharey=True)
    for at, (name, picture) in zip(axes, pictures.items(), strict=True):
        at.imshow(
            picture,
            aspect="auto",
            cmap="inferno",
            vmin=0.0,
            vmax=1.0,
            interpolation="nearest",
            extent=(0, picture.shape[1], lengths[name] / 1e6, 0),
        )
        at.set_ylim(longest / 1e6, 0)
        at.set_title(name, fontsize=10)
        at.set_xlabel("thread")
    axes[0].set_ylabel("time: million instructions on the path of the block")
    figure.savefig(path, dpi=110)


class TpcCosts:
    """Costs of one sequence on one batch."""

    def __init__(self, compiled: device_code.DeviceCode, sequence: str, mep: EncodedMep, traced_block: int) -> None:
        code = compiled.of_sequence(CHAIN.sequences[sequence].algorithms)
        reference = run_reference(CHAIN, mep, CHAIN.load_geometry(None), sequence, toy_events.COLUMNS)
        self.n_clusters = reference.found("all_tpc_clusters.count")
        self.n_tracks = reference.found("tpc_tracks.count")
        launcher = code.launched(reference, traced_block)
        self.constructor = [launched for launched in launcher.launched if is_constructor(launched.algorithm)]
        costs = launcher.costs(reference.n_events)
        self.report = code.report(mep, costs, costs)

    @property
    def path(self) -> int:
        """Instructions on the longest path of the traced block, of the constructor."""
        return int(sum(launched.record.block_paths.max() for launched in self.constructor))

    def figures(self) -> dict[str, Any]:
        """Of the constructor, per cluster; and the estimate of the whole chain in µs per cluster."""
        rows = [row for name, row in self.report["kernels"].items() if name not in _SHARED]
        lanes, warps = (
            sum(int(launched.record.counts[name].sum()) for launched in self.constructor)
            for name in ("lanes", "executions")
        )
        found = {
            "launches": len(self.constructor),
            "warp_instructions": warps / self.n_clusters,
            "barriers": sum(row["barriers"] for row in rows),
            "sectors": sum(row["sectors"] for row in rows) / self.n_clusters,
            "active_lanes": lanes / warps / 32,
            "active_in_steps": active_in_steps(self.constructor),
            "busy_threads": busy_threads(self.constructor),
        }
        for assumed in (SLOW, FAST):
            seconds = estimate(self.report, assumed, H100).kernels
            of_constructor = sum(kernel.seconds for name, kernel in seconds.items() if name not in _SHARED)
            found[f"us_{assumed.name}"] = 1e6 * of_constructor / self.n_clusters
            found[f"chain_us_{assumed.name}"] = 1e6 * sum(k.seconds for k in seconds.values()) / self.n_clusters
        return {name: round(value, 5) for name, value in found.items()}

    def kernel_table(self) -> Table:
        """Kernels of the sequence, per cluster."""
        slow, fast = (estimate(self.report, assumed, H100) for assumed in (SLOW, FAST))
        table = Table(
            *("kernel", "warp instructions", "lanes", "barriers of a block", "sectors", "slow, ns", "fast, ns"),
            title=f"per cluster; {self.n_clusters:,} clusters, {self.n_tracks:,} tracks; ns: ESTIMATE for an H100",
        )
        for name, row in self.report["kernels"].items():
            table.add_row(
                name,
                f"{row['warp_instructions'] / self.n_clusters:,.2f}",
                f"{row['active_lanes']:.1f}",
                f"{row['barriers']:,.0f}",
                f"{row['sectors'] / self.n_clusters:,.2f}",
                *(f"{1e9 * each.kernels[name].seconds / self.n_clusters:,.4f}" for each in (slow, fast)),
            )
        return table


def main(arguments: Sequence[str]) -> None:
    """Print the tables; write the figures and the picture."""
    parser = ResultParser(prog="python -m benchmarks device_code --chain alice_tpc", description=__doc__)
    parser.add_result_file("--json", help="file for the figures")
    parser.add_argument("--sample", default="peripheral", choices=[name.value for name in SampleName])
    parser.add_argument("--slices", type=int, default=1, help="slices of the event")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_result_file("--picture", help="PNG: what each thread of the first slice does, by schedule")
    options = parser.parse_args(arguments)
    console = Console(width=160)
    mep = simulated_slices(SampleName(options.sample), options.seed, options.slices)
    table = Table(
        *("schedule", "launches", "warp instructions", "barriers of a block", "sectors", "active lanes"),
        *("in steps", "busy threads", "slow, ns", "fast, ns", "chain: slow, ns", "fast, ns"),
        title="constructor, per cluster; ns: ESTIMATE for an H100, not measured",
    )
    try:
        compiled = device_code.DeviceCode("slice_tracks", CHAIN, [device_code.COUNTED_FOR])
    except pytest.skip.Exception as missing:
        raise RuntimeError(str(missing)) from missing
    figures, pictures, lengths = {}, {}, {}
    for schedule, sequence in SCHEDULES.items():
        costs = TpcCosts(compiled, sequence, mep, traced_block=0)
        found = figures[schedule] = costs.figures()
        pictures[schedule], lengths[schedule] = activity(costs.constructor), costs.path
        table.add_row(
            schedule,
            str(found["launches"]),
            *(f"{found[name]:,.2f}" for name in ("warp_instructions", "barriers", "sectors")),
            *(f"{found[name]:.1%}" for name in ("active_lanes", "active_in_steps", "busy_threads")),
            *(f"{1e3 * found[name]:.3f}" for name in ("us_slow", "us_fast", "chain_us_slow", "chain_us_fast")),
        )
        if sequence == "slice_tracks":
            console.print(costs.kernel_table())
    console.print(table)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.picture is not None:
        draw(pictures, lengths, options.picture)
