"""Samples of simulated events, for `hltnode simulate`, `demo` and `replay --simulate`."""

import struct
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from hltnode.processing.alice import detector_constants
from hltnode.processing.alice.geometry.tpc_geometry import (
    FILE_NAME,
    SOLENOID_FIELD,
    TpcGeometry,
    builtin_geometry,
    load_geometry,
)
from hltnode.processing.alice.offline.simulation.clusters import Response
from hltnode.processing.alice.offline.simulation.events import Shape, SimulatedEvent, simulated_event
from hltnode.processing.alice.readout import TPC_READOUT
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.sample_cache import NamedSample, digest_of_files
from hltnode.processing.offline.worker_processes import encoded_blocks
from hltnode.protocol.alice.tpc_banks import (
    CHAMBERS_OF_SLICE,
    FIRST_ROWS,
    N_ROWS,
    N_SLICES,
    N_SOURCES,
    PARTS_OF_CHAMBER,
    SOURCES_OF_SLICE,
    TPC_SUBDETECTOR,
    TpcBankType,
    cluster_bank,
    true_index_bank,
    true_list_banks,
)
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.mfp_packing import mfps_of_events
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.raw_data.source_id import source_id

_PERFECT = Response(efficiency=0.98, noise=0.005)


class SampleName(StrEnum):
    """Samples that a user may choose."""

    PP = "pp"
    """Proton collisions with pile-up."""
    PERIPHERAL = "peripheral"
    CENTRAL = "central"
    """Lead collisions."""


class FieldName(StrEnum):
    """Built-in fields."""

    UNIFORM = "uniform"
    SOLENOID = "solenoid"


SHAPES = {
    SampleName.PP: Shape(
        primaries=130.0,
        spread=0.6,
        temperature=0.13,
        collisions=3.0,
        of_collision=68.0,
        v0=0.05,
        material=0.3,
        deltas=0.004,
        response=_PERFECT,
    ),
    SampleName.PERIPHERAL: Shape(
        primaries=3875.0,
        spread=0.05,
        temperature=0.16,
        collisions=0.5,
        of_collision=60.0,
        v0=0.05,
        material=0.3,
        deltas=0.004,
        response=_PERFECT,
    ),
    SampleName.CENTRAL: Shape(
        primaries=22965.0,
        spread=0.02,
        temperature=0.17,
        collisions=0.5,
        of_collision=60.0,
        v0=0.05,
        material=0.3,
        deltas=0.004,
        response=_PERFECT,
    ),
}
"""Multiplicities are tuned to the means of D. Rohr, "ALICE TPC Online Tracking on GPU based on Kalman Filter" (diploma
thesis, Heidelberg, 2010): 48,189 clusters of a pp event (section 7.1), 4,000 tracks (section 5.1), 23,979 tracks
(section 9.2.2)."""
EVENTS_PER_BLOCK = {SampleName.PP: 4, SampleName.PERIPHERAL: 2, SampleName.CENTRAL: 1}
_COUNTED = ("clusters", "particles")
_BLOCK_COUNTS = struct.Struct("<2Q")
SOURCES = (N_SLICES, N_SLICES * CHAMBERS_OF_SLICE, N_SOURCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class TpcOptions:
    """The options of `hltnode simulate` that this chain has of its own."""

    sample: Annotated[SampleName, typer.Option("--sample", help="Kind of collisions.")] = SampleName.PP
    sources: Annotated[
        int | None,
        typer.Option("--sources", help="Sources: 36, 216 or 1728. Default: 36 for pp, 1728 for the others."),
    ] = None
    field_shape: Annotated[
        FieldName, typer.Option("--field", help="Built-in field; --geometry DIR has a field of its own.")
    ] = FieldName.UNIFORM
    efficiency: Annotated[
        float, typer.Option("--efficiency", min=0.0, max=1.0, help="Probability of a cluster to be found.")
    ] = 0.98
    noise: Annotated[
        float, typer.Option("--noise", min=0.0, max=1.0, help="Clusters of noise for each cluster of a particle.")
    ] = 0.005
    dead_chambers: Annotated[
        int, typer.Option("--dead-chambers", min=0, max=216, help="Chambers of 216 that send no clusters.")
    ] = 0
    pile_up: Annotated[
        float | None,
        typer.Option("--pile-up", min=0.0, max=50.0, help="Mean number of other collisions; the sample's if absent."),
    ] = None

    def shape(self, dead_chambers: tuple[int, ...]) -> Shape:
        """What the simulation needs."""
        shape = SHAPES[self.sample]
        return replace(
            shape,
            collisions=shape.collisions if self.pile_up is None else self.pile_up,
            response=Response(efficiency=self.efficiency, noise=self.noise, dead_chambers=dead_chambers),
        )


@dataclass(frozen=True)
class TpcSample:
    """The events of a request."""

    request: SampleRequest
    own: TpcOptions
    counts: Counter[str] = field(default_factory=Counter)
    """Clusters and particles of the events that `blocks` has made."""

    @property
    def name(self) -> str:
        """A short name for files."""
        return f"tpc-{self.own.sample.value}"

    @property
    def identity(self) -> dict[str, Any]:
        """The request and the code."""
        folder = Path(__file__).parent
        files = [folder, folder.parents[1] / "geometry", Path(detector_constants.__file__)]
        if self.request.geometry is not None:
            files.append(self.request.geometry / FILE_NAME)
        return {
            "seed": self.request.seed,
            "run": self.request.run,
            "file_format": self.request.file_format,
            **{key: value for key, value in self.description.items() if key not in _COUNTED},
            "code": digest_of_files(files),
        }

    @property
    def description(self) -> dict[str, Any]:
        """The chain's own options."""
        own = {**asdict(self.own), "sample": self.own.sample.value, "field_shape": self.own.field_shape.value}
        return {**own, **{name: self.counts[name] for name in _COUNTED if name in self.counts}}

    @cached_property
    def geometry(self) -> TpcGeometry:
        """The TPC and its field. Raises ValueError, which names the file."""
        if self.request.geometry is not None:
            return load_geometry(self.request.geometry)
        return builtin_geometry(SOLENOID_FIELD) if self.own.field_shape is FieldName.SOLENOID else builtin_geometry()

    @cached_property
    def sources(self) -> int:
        """The number of sources. Raises ValueError for another number than a set-up has."""
        n = self.own.sources or (SOURCES[0] if self.own.sample is SampleName.PP else SOURCES[-1])
        if n not in SOURCES:
            raise ValueError(f"{n} sources: {', '.join(map(str, SOURCES))} expected")
        return n

    @cached_property
    def dead_chambers(self) -> tuple[int, ...]:
        """The chambers that send nothing, the same in all events of a seed."""
        rng = np.random.default_rng((self.request.seed, 0, 1))
        chosen = rng.choice(N_SLICES * CHAMBERS_OF_SLICE, self.own.dead_chambers, replace=False)
        return tuple(sorted(chosen.tolist()))

    def blocks(self, n: int, jobs: int) -> Generator[tuple[int, bytes]]:
        """Blocks of MDF records, or MEPs. Raises ValueError for a geometry or a number of sources."""
        _ = self.geometry, self.sources
        self.counts.update(dict.fromkeys(_COUNTED, 0))
        per_block = EVENTS_PER_BLOCK[self.own.sample]
        for size, block in encoded_blocks(partial(counted_block, self), n, per_block, jobs):
            self.counts.update(dict(zip(_COUNTED, _BLOCK_COUNTS.unpack_from(block), strict=True)))
            yield size, block[_BLOCK_COUNTS.size :]

    def events(self, n: int) -> Iterator[list[RawBank]]:
        """Raw banks of the first n events."""
        return (event_banks(self, number) for number in range(n))


class TpcSimulation:
    """Collisions in the TPC: helices, V0 decays, secondaries, delta electrons, drift and pads, noise and pile-up."""

    options = TpcOptions
    named_samples: Mapping[str, NamedSample] = {
        "tpc_pp": NamedSample(events=100, options={}, description="pp collisions with pile-up in the TPC of ALICE")
    }

    def sample(self, request: SampleRequest, options: TpcOptions) -> TpcSample:
        """The sample of a request."""
        return TpcSample(request, options)


def counted_block(sample: TpcSample, first: int, n: int) -> bytes:
    """The numbers of clusters and particles (_BLOCK_COUNTS), then the bytes of encode_block."""
    events = [event_of(sample, number) for number in range(first, first + n)]
    counts = sum(len(event.clusters) for event in events), sum(len(event.particles) for event in events)
    return _BLOCK_COUNTS.pack(*counts) + encode_block(sample, first, events)


def encode_block(sample: TpcSample, first: int, several: Sequence[SimulatedEvent]) -> bytes:
    """Events as MDF records, or as one MEP, whose first source is ODIN. first: the number of the first event."""
    made = [banks_of(event, sample.sources) for event in several]
    if sample.request.file_format == "mep":
        events = [
            [encode_odin(Odin(run=sample.request.run, event_id=first + i)), *banks] for i, banks in enumerate(made)
        ]
        return encode_mep(list(mfps_of_events(TPC_READOUT, EventTable.of_events(events), first).values()))
    return b"".join(encode_record(encode_banks(banks), run=sample.request.run) for banks in made)


def event_of(sample: TpcSample, number: int) -> SimulatedEvent:
    """An event. Each event has random numbers of its own, so that it is the same in any block."""
    rng = np.random.default_rng((sample.request.seed, number))
    return simulated_event(rng, sample.own.shape(sample.dead_chambers), sample.geometry)


def event_banks(sample: TpcSample, number: int) -> list[RawBank]:
    """The banks of an event."""
    return banks_of(event_of(sample, number), sample.sources)


def banks_of(event: SimulatedEvent, n_sources: int) -> list[RawBank]:
    """The banks of a simulated event: a bank of clusters for each source, empty ones included, and the truth.

    Raises BankError for more clusters of a source than a bank holds.
    """
    number = source_numbers(event.slice_number, event.clusters["row"], n_sources)
    sources = np.arange(n_sources) * (N_SOURCES // n_sources)
    begins, ends = np.searchsorted(number, sources, "left").tolist(), np.searchsorted(number, sources, "right").tolist()
    clusters, truth = [], []
    for source, begin, end in zip(sources.tolist(), begins, ends, strict=True):
        of_source = source_id(TPC_SUBDETECTOR, source)
        clusters.append(cluster_bank(of_source, event.clusters[begin:end]))
        truth.append(true_index_bank(of_source, event.particle_of[begin:end]))
    return [
        *clusters,
        *truth,
        *true_list_banks(TpcBankType.TRUE_PARTICLES, event.particles),
        *true_list_banks(TpcBankType.TRUE_STATES, event.states),
    ]


def source_numbers(slice_number: NDArray[np.int64], row: NDArray[np.integer], n_sources: int) -> NDArray[np.int64]:
    """The number of the source of each cluster, ascending for clusters in the order of slice and row."""
    per_slice = n_sources // N_SLICES
    boundaries = [0]
    if per_slice >= CHAMBERS_OF_SLICE:
        boundaries = list(FIRST_ROWS[:-1])
    if per_slice == SOURCES_OF_SLICE:
        boundaries = [
            begin + (end - begin) * part // PARTS_OF_CHAMBER
            for begin, end in pairwise(FIRST_ROWS)
            for part in range(PARTS_OF_CHAMBER)
        ]
    place = np.searchsorted(boundaries, np.arange(N_ROWS), "right") - 1
    within = place * (SOURCES_OF_SLICE // per_slice)
    numbers: NDArray[np.int64] = slice_number * SOURCES_OF_SLICE + within[row]
    return numbers
