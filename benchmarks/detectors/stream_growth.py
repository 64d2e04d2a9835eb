"""Growth of the streaming chains with the rate of the detector: processor time of each kernel for a sub-slice.

All rates are measured in turn, and the least time of the turns counts. Two exponents are fitted over the rates: against
the rate, and against the hits, which noise makes grow more slowly than the rate. Beside them stand the numbers of
objects that the kernels find: what they grow with is physics, not a choice of the code.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.km3net.chain import CHAIN as KM3NET
from hltnode.processing.km3net.geometry.pmt_table import km3net_tower
from hltnode.processing.km3net.offline.simulation import stream as km3net_stream
from hltnode.processing.km3net.offline.simulation.sample import banks_of_hits
from hltnode.processing.mu3e.chain import CHAIN as MU3E
from hltnode.processing.mu3e.offline.simulation import stream as mu3e_stream
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.km3net.hit_banks import HIT as KM3NET_HIT
from hltnode.protocol.mu3e.hit_banks import HIT as MU3E_HIT
from hltnode.protocol.mu3e.hit_banks import hits_bank
from hltnode.protocol.raw_data.raw_bank import RawBank

TARGET = 1.1
TURNS = 5
REPEAT = 4
PMT_RATES = (27_500.0, 55_000.0, 82_500.0, 110_000.0, 165_000.0, 220_000.0)
"""Hz of a PMT."""
MUON_RATES = (2.5e7, 5e7, 1e8, 1.5e8, 2e8)
"""Stopped muons in Hz; above the last one, sub-slices have more hits than the chain takes."""
NAMES = {"km3net": ("km3net_hits", "candidates_found", "windows"), "mu3e": ("mu3e_hits", "triplets", "mu3e_tracks")}


@dataclass(frozen=True, slots=True)
class Stream:
    """Sub-slices of one rate. hits: of a sub-slice, in the mean."""

    rate: float
    hits: float
    mep: EncodedMep


def km3net_sub_slices(conditions: km3net_stream.Conditions, n: int) -> list[list[RawBank]]:
    """The banks of n sub-slices of a tower of 84 PMTs."""
    stream = km3net_stream.HitStream(km3net_tower(), conditions, 1)
    return [banks_of_hits(stream, stream.hits(number)[0]) for number in range(n)]


def mu3e_sub_slices(conditions: mu3e_stream.Conditions, n: int) -> list[list[RawBank]]:
    """The banks of n sub-slices of Michel decays."""
    stream = mu3e_stream.HitStream(conditions, 1)
    return [[hits_bank(i, hits) for i, hits in enumerate(stream.sub_slice(number).hits)] for number in range(n)]


def km3net_streams(rates: Sequence[float] = PMT_RATES, n: int = 128) -> Iterator[Stream]:
    """A tower of 84 PMTs without bioluminescence."""
    for rate in rates:
        banks = km3net_sub_slices(km3net_stream.Conditions(rate=rate, bright_pmts=0), n)
        yield Stream(rate, _bytes_of(banks) / (n * KM3NET_HIT.itemsize), encode_mep(KM3NET, banks))


def mu3e_streams(rates: Sequence[float] = MUON_RATES, n: int = 32) -> Iterator[Stream]:
    """Michel decays."""
    for rate in rates:
        banks = mu3e_sub_slices(mu3e_stream.Conditions(muon_rate=rate), n)
        yield Stream(rate, _bytes_of(banks) / (n * MU3E_HIT.itemsize), encode_mep(MU3E, banks))


def _bytes_of(sub_slices: Sequence[Sequence[RawBank]]) -> int:
    return sum(len(bank.payload) for banks in sub_slices for bank in banks)


def run(_: Path) -> Iterator[Result]:
    """Rows of microseconds for a sub-slice, and of exponents."""
    for chain, streams in ((KM3NET, list(km3net_streams())), (MU3E, list(mu3e_streams()))):
        yield from results(chain.name, streams, times_of(chain, streams))
        for name, counts in counts_of(chain, streams).items():
            for stream, count in zip(streams, counts, strict=True):
                yield Result(f"{chain.name}: {name} at {stream.rate:.3g} Hz", count, "per sub-slice", "", None)


def results(chain: str, streams: Sequence[Stream], times: Mapping[str, Sequence[float]]) -> Iterator[Result]:
    """The rows of one chain. times: of each kernel, by rate."""
    rates, hits = [stream.rate for stream in streams], [stream.hits for stream in streams]
    total = [sum(of_rate) for of_rate in zip(*times.values(), strict=True)]
    for name, of_kernel in (*times.items(), ("all kernels", total)):
        for stream, each in zip(streams, of_kernel, strict=True):
            yield Result(f"{chain}: {name} at {stream.rate:.3g} Hz", each, "us/sub-slice", "", None)
        is_sum = name == "all kernels"
        of_rate, of_hits = exponent(rates, of_kernel), exponent(hits, of_kernel)
        ratio, target = (TARGET / of_rate, 1.0) if is_sum else (None, None)
        yield Result(f"{chain}: {name}, exponent of rate", of_rate, "", "", ratio, target)
        yield Result(f"{chain}: {name}, exponent of hits", of_hits, "", "", None)


def exponent(of: Sequence[float], values: Sequence[float]) -> float:
    """The power with which values grow, fitted in logarithms."""
    return float(np.polyfit(np.log(of), np.log(values), 1)[0])


def times_of(chain: TriggerChain, streams: Sequence[Stream]) -> dict[str, list[float]]:
    """Microseconds of each kernel for a sub-slice, by rate."""
    limits = BatchLimits(events=streams[0].mep.n_events, input_bytes=4 << 20, rows=32)
    sequence = ProfiledSequence(None, None, limits, chain=chain)
    turns = [[sequence.microseconds_per_kernel([stream.mep] * REPEAT) for stream in streams] for _turn in range(TURNS)]
    return {name: [min(turn[i][name] for turn in turns) for i in range(len(streams))] for name in turns[0][0]}


def counts_of(chain: TriggerChain, streams: Sequence[Stream]) -> dict[str, list[float]]:
    """Mean numbers of objects of a sub-slice, by rate."""
    limits = BatchLimits(events=streams[0].mep.n_events, input_bytes=4 << 20, rows=32)
    sequence = ProfiledSequence(None, None, limits, chain=chain)
    found: dict[str, list[float]] = {name: [] for name in NAMES[chain.name]}
    for stream in streams:
        for batch in sequence.runner.run([stream.mep]):
            for name, counts in found.items():
                counts.append(float(np.mean(batch.workspace.output.counts[name])))
    return found


def summary(results: Sequence[Result]) -> dict[str, float]:
    """Exponents of all kernels against the rate and the hits."""
    return {
        result.name.replace(": all kernels, exponent of ", "_"): result.value
        for result in results
        if ": all kernels, exponent" in result.name
    }
