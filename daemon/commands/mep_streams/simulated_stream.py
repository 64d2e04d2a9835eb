"""A simulated stretch of a stream as time slices that follow one another without end, and its truth.

No simulation keeps up with a detector, so a stretch is simulated once and repeated: slice k x N + n of the stream has
the hits of slice n of N. Ids of slices go on, and with them the times, which count from the start of the run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain as chained
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.commands.common import complete_file
from hltnode.daemon.commands.progress import event_progress
from hltnode.processing.framework.offline_runner import encode_slices
from hltnode.processing.framework.streaming import Streaming
from hltnode.processing.framework.sub_slices import hit_banks
from hltnode.processing.offline.chain_tools import SampleRequest, SimulatedSample, installed_tools
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.raw_data import mep as mep_files
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of a stream. core: sub-slices of a slice without its margins. hits: i64[slices], without margins."""

    core: int
    streaming: Streaming
    hits: NDArray[np.int64]

    @property
    def n_slices(self) -> int:
        """Slices until the stream repeats itself."""
        return len(self.hits)

    @property
    def slice_ns(self) -> int:
        """The time from one slice to the next."""
        return self.core * self.streaming.sub_slice_ns

    def hits_of_first(self, n_slices: int) -> int:
        """The hits of the first slices of the stream, margins not counted."""
        passes, rest = divmod(n_slices, self.n_slices)
        return int(passes * self.hits.sum() + self.hits[:rest].sum())


def streaming_of(chain: TriggerChain) -> Streaming:
    """How a chain cuts time. Raises ValueError for a chain with a trigger signal."""
    streaming = chain.with_lines(chain.load_trigger(None)).streaming
    if streaming is None:
        raise ValueError(f"chain {chain.name} does not cut time into slices: hltnode replay sends its events")
    return streaming


def sample_at_rate(chain: str, request: SampleRequest, rate: float | None) -> SimulatedSample:
    """The simulated stream of a chain at a rate, None: the usual one. Raises ValueError for a rate out of range."""
    tools = installed_tools(chain)
    if tools.simulation is None:
        raise ValueError(f"chain {chain} has no simulation")
    simulation = tools.simulation()
    options = simulation.options()
    if rate is not None:
        if tools.stream_rate is None:
            raise ValueError(f"--rate: chain {chain} names no rate of its stream")
        name = tools.stream_rate.option
        least, most = _range_of(simulation.options, name)
        if not least <= rate <= most:
            raise ValueError(f"--rate {rate:g}: chain {chain} expects {least:g} to {most:g} {tools.stream_rate.unit}")
        options = replace(options, **{name: rate})
    return simulation.sample(request, options)


def _range_of(options: type[Any], name: str) -> tuple[float, float]:
    """The least and the greatest value of an option of a chain, which typer checks on other command lines."""
    assert name in {field.name for field in fields(options)}
    for info in getattr(get_type_hints(options, include_extras=True)[name], "__metadata__", ()):
        least, most = getattr(info, "min", None), getattr(info, "max", None)
        return (0.0 if least is None else least, np.inf if most is None else most)
    return 0.0, np.inf


def write_stretch(
    chain: TriggerChain, sample: SimulatedSample, core: int, n_slices: int, slices: Path, truth: Path | None, run: int
) -> Stretch:
    """Simulate a stretch; write its slices as MEPs, and its sub-slices with truth as records of an MDF file.

    The margins of the first slice are the last sub-slices of the stretch, and those of the last slice the first ones:
    the slices follow one another also from pass to pass.
    """
    streaming = streaming_of(chain)
    n = core * n_slices
    made: list[Sequence[RawBank]] = []
    with event_progress("simulating sub-slices", n) as add:
        for banks in sample.events(n):
            made.append(banks)
            add(1)
    if truth is not None:
        with complete_file(truth) as file:
            file.writelines(encode_record(encode_banks(banks), run=run) for banks in made)
    sent = [hit_banks(chain.readout, streaming, banks) for banks in made]
    with slices.open("wb") as file:
        for packed in encode_slices(chain, _with_margins(sent, streaming), core):
            mfps = [bytes(packed.data[at : at + size]) for _, at, size in packed.fragments]
            file.write(mep_files.encode_mep(mfps))
    size = streaming.hit.size
    of_sub_slices = np.array([sum(len(bank.payload) for bank in banks) // size for banks in sent], np.int64)
    return Stretch(core=core, streaming=streaming, hits=of_sub_slices.reshape(n_slices, core).sum(1))


def _with_margins(sent: Sequence[Sequence[RawBank]], streaming: Streaming) -> Iterator[Sequence[RawBank]]:
    n = len(sent)
    before = (sent[i % n] for i in range(-streaming.margin_before, 0))
    behind = (sent[i % n] for i in range(streaming.margin_behind))
    return chained(before, sent, behind)
