"""Nodes of the streaming chains against their kernels alone: processor time of all threads for a sub-slice.

The node is a separate process on one thread with the default sequence, lines and output; `hltnode stream`, another
process, feeds it over TCP, each source on a connection of its own, in slices of the usual length of the chain. Both
chains have a further row with short slices: a node spends some time on each slice. A slot holds one slice, so each
batch is one. A stream of `mu3e` in real time is more than one thread computes, so it falls behind. One of `km3net`
falls behind on a busy machine only. The baseline computes the same slices alone, in this process, before and after the
node. The first and the last quarter of the slices are not measured.
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
from hltnode.processing.selection.trigger_chain import TriggerChain

SHORT = 510
"""Sub-slices of a slice, without its margins: one on each side for both chains."""
SLICES = {"km3net": 2, "km3net, short slices": 8, "mu3e": 2, "mu3e, short slices": 4}
"""Simulated slices, which the stream repeats."""
FED = {"km3net": 400, "km3net, short slices": 1600, "mu3e": 80, "mu3e, short slices": 160}
"""Number of slices for the node."""


def run(_: Path) -> Iterator[Result]:
    """A row for each chain: medians over the runs; the ratio is target / measured, and 1 reaches the target."""
    for name, chain, length in (
        ("km3net", KM3NET, _usual(KM3NET)),
        ("km3net, short slices", KM3NET, SHORT),
        ("mu3e", MU3E, _usual(MU3E)),
        ("mu3e, short slices", MU3E, SHORT),
    ):
        n = SLICES[name] * length + 2
        if chain is KM3NET:
            banks = km3net_sub_slices(km3net_stream.Conditions(), n)
        else:
            banks = mu3e_sub_slices(mu3e_stream.Conditions(), n)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            meps = list(encode_slices(chain, banks, length))
            limits = BatchLimits(events=meps[0].n_events, input_bytes=16 * MIB, rows=64)
            alone = ProfiledSequence(None, None, limits, chain=chain)
            node = MeasuredNode(
                chain=chain.name,
                max_events=4096,
                feed=("stream", "--sub-slices", length, "--slices", SLICES[name]),
                fed=FED[name] * meps[0].n_events,
            )
            yield from node_rows(name, "us/sub-slice", node.turns(alone, meps, folder))


def _usual(chain: TriggerChain) -> int:
    """Sub-slices of a usual slice of a streaming chain."""
    assert chain.streaming is not None
    return chain.streaming.sub_slices


def summary(results: Sequence[Result]) -> dict[str, float]:
    """Time of the node / that of its kernels, by row."""
    return ratios(results)
