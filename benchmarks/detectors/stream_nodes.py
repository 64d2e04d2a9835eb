"""Nodes of the streaming chains against their kernels alone: processor time of all threads for a sub-slice.

The node is a separate process on one thread with the default sequence, lines and output; `hltnode stream`, another
process, feeds it over TCP, each source on a connection of its own. A slot holds one slice, so each batch is one. A
stream of `mu3e` in real time is more than one thread computes, so it falls behind. One of `km3net` falls behind on a
busy machine only. The baseline computes the same slices alone, in this process, before and after the node. The first
and the last quarter of the slices are not measured.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.detectors.stream_growth import km3net_sub_slices, mu3e_sub_slices
from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from benchmarks.readout.node_beside_kernels import MeasuredNode, node_rows, ratios
from benchmarks.readout.real_readout import MIB
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_slices
from hltnode.processing.km3net.chain import CHAIN as KM3NET
from hltnode.processing.km3net.offline.simulation import stream as km3net_stream
from hltnode.processing.mu3e.chain import CHAIN as MU3E
from hltnode.processing.mu3e.offline.simulation import stream as mu3e_stream

SUB_SLICES = 510
"""Of a slice, without its margins: one on each side for both chains."""
SLICES = 4
"""Simulated slices, which the stream repeats."""
FED = {"km3net": 800, "mu3e": 40}
"""Number of slices for the node."""


def run(_: Path) -> Iterator[Result]:
    """A row for each chain: medians over the runs; the ratio is target / measured, and 1 reaches the target."""
    n = SLICES * SUB_SLICES + 2
    for chain, banks in (
        (KM3NET, km3net_sub_slices(km3net_stream.Conditions(), n)),
        (MU3E, mu3e_sub_slices(mu3e_stream.Conditions(), n)),
    ):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            meps = list(encode_slices(chain, banks, SUB_SLICES))
            limits = BatchLimits(events=meps[0].n_events, input_bytes=16 * MIB, rows=64)
            alone = ProfiledSequence(None, None, limits, chain=chain)
            node = MeasuredNode(
                chain=chain.name,
                max_events=1024,
                feed=("stream", "--sub-slices", SUB_SLICES, "--slices", SLICES),
                fed=FED[chain.name] * meps[0].n_events,
            )
            yield from node_rows(chain.name, "us/sub-slice", node.turns(alone, meps, folder))


def summary(results: Sequence[Result]) -> dict[str, float]:
    """Time of the node / that of its kernels, by chain."""
    return ratios(results)
