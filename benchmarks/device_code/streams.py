"""Counts the cost of the kernels of a streaming chain on a GPU without using one, beside published times.

`python -m benchmarks device_code --chain km3net|mu3e [--json FILE]`

The PTX of the default sequence is executed on simulated sub-slices, and its results must be those of the CPU. The time
on an H100 that follows is an estimate (estimate.py), not a measurement. It is for a batch that fills the GPU. The
published figures:

* `km3net`: one second of data of 84 PMTs, 4.6 million hits, in 150 ms of a C2050 and 110 ms of a GTX Titan without
  preparation and copies, 500 ms with them (B. Bouhadef et al., "Parallel Neutrino Triggers Using GPUs for an Underwater
  Telescope", DESY-PROC-2014-05, section 5).
* `mu3e`: 1.4e10 combinations of three hits a second on a GTX 680, with sorting and copies (D. vom Bruch, "Track and
  Vertex Reconstruction on GPUs for the Mu3e Experiment", DESY-PROC-2014-05, section 5).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from benchmarks.detectors import mu3e
from benchmarks.device_code import command as device_code
from benchmarks.device_code.estimate import FAST, H100, SLOW, Estimate, estimate, print_estimate
from hltnode.daemon.commands.result_files import ResultParser
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.km3net import chain as km3net_chain
from hltnode.processing.km3net.geometry.pmt_table import km3net_tower
from hltnode.processing.km3net.offline.simulation import stream as km3net_stream
from hltnode.processing.km3net.offline.simulation.sample import banks_of_hits
from hltnode.processing.mu3e import chain as mu3e_chain
from hltnode.processing.mu3e.offline.simulation import stream as mu3e_stream
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.mu3e.hit_banks import hits_bank
from tests.processing.chains.reference import run_reference
from tests.processing.km3net import telescope_events
from tests.processing.mu3e import pixel_events

GOAL = 10.0
"""How many times as fast as published."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Simulated sub-slices. work: hits or combinations in all of them, what the published figure counts."""

    mep: EncodedMep
    work: int


@dataclass(frozen=True, slots=True)
class Published:
    """A published time. kernels: those that it includes; empty: all. seconds: for one unit of work.

    copies: whether the time includes copies to the device.
    """

    name: str
    seconds: float
    kernels: tuple[str, ...]
    copies: bool


@dataclass(frozen=True, slots=True)
class Stream:
    """A streaming chain: its samples, the unit of work, and published times."""

    chain: TriggerChain
    sequence: str
    columns: tuple[str, ...]
    sample: Callable[[int], Sample]
    unit: str
    published: tuple[Published, ...]


def telescope_hits(sub_slices: int) -> Sample:
    """Hits of a tower of 84 PMTs at 55 kHz, 4.6 million a second, without bioluminescence."""
    stream = km3net_stream.HitStream(km3net_tower(), km3net_stream.Conditions(bright_pmts=0), 1)
    parts = [stream.hits(number)[0] for number in range(sub_slices)]
    mep = encode_mep(km3net_chain.CHAIN, [banks_of_hits(stream, hits) for hits in parts])
    return Sample(mep, sum(map(len, parts)))


def pixel_hits(sub_slices: int) -> Sample:
    """Hits of 10^8 muons a second."""
    stream = mu3e_stream.HitStream(mu3e_stream.Conditions(), 1)
    parts = [stream.sub_slice(number).hits for number in range(sub_slices)]
    mep = encode_mep(mu3e_chain.CHAIN, [[hits_bank(i, hits) for i, hits in enumerate(part)] for part in parts])
    joined = [np.concatenate(part) for part in parts]
    layers = [mu3e.layers_of(hits, hits["time"].astype(np.int64)) for hits in joined]
    return Sample(mep, sum(mu3e.combinations(each) for each in layers))


_NOMINAL_HITS = 4.6e6
STREAMS: Mapping[str, Stream] = {
    "km3net": Stream(
        km3net_chain.CHAIN,
        "muon_windows",
        telescope_events.COLUMNS,
        telescope_hits,
        "hits",
        (
            Published("C2050, GPU alone", 0.150 / _NOMINAL_HITS, (), copies=False),
            Published("GTX Titan, GPU alone", 0.110 / _NOMINAL_HITS, (), copies=False),
            Published("C2050, with preparation and copies", 0.500 / _NOMINAL_HITS, (), copies=True),
        ),
    ),
    "mu3e": Stream(
        mu3e_chain.CHAIN,
        "decays",
        pixel_events.COLUMNS,
        pixel_hits,
        "combinations",
        (
            Published(
                "GTX 680, triplets with sorting and copies",
                1 / 1.4e10,
                ("fragment_offsets", "mu3e_sort_hits", *mu3e.TRIPLETS),
                copies=True,
            ),
        ),
    ),
}


def seconds_of(found: Estimate, published: Published, work_per_event: float) -> float:
    """Estimated seconds for one unit of work, of the kernels that a published time has.

    Copies run beside the kernels of other batches, so the larger of both counts.
    """
    kernels = sum(
        kernel.seconds for name, kernel in found.kernels.items() if not published.kernels or name in published.kernels
    )
    return max(kernels, found.copy if published.copies else 0.0) / work_per_event


def figures(stream: Stream, report: Mapping[str, Any], work_per_event: float) -> dict[str, dict[str, float]]:
    """For each published time: it and the estimates, in units of work per second, and their ratios."""
    slow, fast = (estimate(report, assumed, H100) for assumed in (SLOW, FAST))
    found = {}
    for published in stream.published:
        of_slow, of_fast = (seconds_of(each, published, work_per_event) for each in (slow, fast))
        found[published.name] = {
            "published_per_s": 1 / published.seconds,
            "slow_per_s": 1 / of_slow,
            "fast_per_s": 1 / of_fast,
            "slow_ratio": published.seconds / of_slow,
            "fast_ratio": published.seconds / of_fast,
        }
    return found


def main(name: str, arguments: Sequence[str]) -> None:
    """Print the tables of the chain of this name; write the figures."""
    parser = ResultParser(prog=f"python -m benchmarks device_code --chain {name}", description=__doc__)
    parser.add_result_file("--json", help="file for the figures")
    parser.add_argument("--sub-slices", type=int, default=32, help="simulated sub-slices; default: 32")
    options = parser.parse_args(arguments)
    stream = STREAMS[name]
    try:
        code = device_code.DeviceCode(stream.sequence, stream.chain)
    except pytest.skip.Exception as missing:
        raise RuntimeError(str(missing)) from missing
    sample = stream.sample(options.sub_slices)
    chain = stream.chain
    reference = run_reference(chain, sample.mep, chain.load_geometry(None), stream.sequence, stream.columns)
    costs = code.costs(reference)
    report = code.report(sample.mep, costs, costs)
    work = sample.work / sample.mep.n_events
    console = Console(width=220)
    title = f"{name}, {sample.mep.n_events} sub-slices, {work:,.1f} {stream.unit} in each"
    device_code.print_report(title, report, console)
    print_estimate(title, report, console)
    found = figures(stream, report, work)
    table = Table(
        *("published", f"{stream.unit}/s", "slow", "ratio", "fast", "ratio", "goal"),
        title=f"{name}: ESTIMATE for {H100.name} beside published figures, not measured",
    )
    for what, row in found.items():
        cells = (f"{row[key]:,.3g}" for key in ("published_per_s", "slow_per_s", "slow_ratio", "fast_per_s"))
        table.add_row(what, *cells, f"{row['fast_ratio']:,.3g}", f"{GOAL:,.0f}")
    console.print(table)
    if options.json is not None:
        content = {**report, "work_per_event": work, "unit": stream.unit, "published": found}
        options.json.write_text(json.dumps(content, indent=1) + "\n")
