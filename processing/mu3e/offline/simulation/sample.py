"""Time slices of a simulated stream as files, for `hltnode simulate`."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hltnode.processing.mu3e import detector_constants
from hltnode.processing.mu3e.detector_constants import MARGIN_BEFORE, MARGIN_BEHIND
from hltnode.processing.mu3e.geometry import sensor_table
from hltnode.processing.mu3e.geometry.sensor_table import SOURCES
from hltnode.processing.mu3e.offline.simulation import decays, flight, phase_space, stream
from hltnode.processing.mu3e.offline.simulation.stream import Conditions, HitStream
from hltnode.processing.mu3e.readout import MU3E_READOUT
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.sample_cache import NamedSample, digest_of_files
from hltnode.processing.offline.worker_processes import encoded_blocks
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.mfp_packing import mfps_of_events
from hltnode.protocol.mu3e.hit_banks import (
    HIT,
    DecayKind,
    hits_bank,
    true_decays_bank,
    true_ids_bank,
    true_particles_bank,
)
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

SUB_SLICES_PER_BLOCK = 256
"""Also the sub-slices of a time slice without its margins, in files of MEPs. Empty ones fill the last slice."""


class SampleName(StrEnum):
    """Decays that a user may choose beside those of the beam."""

    MICHEL = "michel"
    """No others."""
    SIGNAL = "signal"
    CONVERSION = "conversion"
    BHABHA = "bhabha"


_WANTED = {
    SampleName.MICHEL: None,
    SampleName.SIGNAL: DecayKind.SIGNAL,
    SampleName.CONVERSION: DecayKind.CONVERSION,
    SampleName.BHABHA: DecayKind.BHABHA,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelOptions:
    """The options of `hltnode simulate` that this chain has of its own."""

    sample: Annotated[
        SampleName, typer.Option("--sample", help="Decays that are added to those of the beam; michel: none.")
    ] = SampleName.SIGNAL
    spacing: Annotated[
        int, typer.Option("--spacing", min=1, max=1_000_000, help="Sub-slices for each added decay.")
    ] = 4
    muon_rate: Annotated[float, typer.Option("--muon-rate", min=0.0, max=2e9, help="Stopped muons in Hz.")] = 1e8
    bhabha: Annotated[
        float, typer.Option("--bhabha", min=0.0, max=1.0, help="Fraction of these with a Bhabha electron.")
    ] = 1e-4
    efficiency: Annotated[float, typer.Option("--efficiency", min=0.0, max=1.0, help="Of a sensor.")] = 0.99
    noise: Annotated[float, typer.Option("--noise", min=0.0, max=100.0, help="Hz of noise of a pixel.")] = 1.0

    def conditions(self) -> Conditions:
        """What the simulation needs."""
        return Conditions(
            muon_rate=self.muon_rate,
            efficiency=self.efficiency,
            noise=self.noise,
            bhabha=self.bhabha,
            wanted=_WANTED[self.sample],
            spacing=self.spacing,
        )


@dataclass(frozen=True, slots=True)
class PixelSample:
    """The sub-slices of a request; one is an event of the file."""

    request: SampleRequest
    own: PixelOptions

    @property
    def name(self) -> str:
        """A short name for files."""
        return f"mu3e-{self.own.sample}"

    @property
    def identity(self) -> dict[str, Any]:
        """The request and the code."""
        modules = (decays, flight, phase_space, stream, detector_constants, sensor_table)
        files = [Path(__file__), *(Path(str(module.__file__)) for module in modules)]
        return {
            "seed": self.request.seed,
            "run": self.request.run,
            "file_format": self.request.file_format,
            **self.description,
            "code": digest_of_files(files),
        }

    @property
    def description(self) -> dict[str, Any]:
        """The chain's own options."""
        return asdict(self.own)

    def blocks(self, n: int, jobs: int) -> Generator[tuple[int, bytes]]:
        """Blocks of MDF records, or time slices as MEPs with margins. Raises ValueError for a geometry."""
        _stream_of(self)
        encode = partial(encode_slice_of, self, n) if self.request.file_format == "mep" else partial(encode_block, self)
        yield from encoded_blocks(encode, n, SUB_SLICES_PER_BLOCK, jobs)

    def events(self, n: int) -> Iterator[list[RawBank]]:
        """Raw banks of the first n sub-slices. Raises ValueError for a geometry."""
        return (sub_slice_banks(self, number) for number in range(n))


class PixelSimulation:
    """Hits of decays of stopped muons at a rate, and of decays that are added to them."""

    options = PixelOptions
    named_samples: Mapping[str, NamedSample] = {
        "mu3e-signal": NamedSample(
            events=2000,
            options={"sample": SampleName.SIGNAL},
            description="0.8 ms of 1e8 muons/s with 500 decays mu -> eee",
        )
    }

    def sample(self, request: SampleRequest, options: PixelOptions) -> PixelSample:
        """The sample of a request."""
        return PixelSample(request, options)


@cache
def _stream_of(sample: PixelSample) -> HitStream:
    if sample.request.geometry is not None:
        raise ValueError(f"--geometry {sample.request.geometry}: the detector of the chain mu3e is built in")
    return HitStream(sample.own.conditions(), sample.request.seed)


def sub_slice_banks(sample: PixelSample, number: int) -> list[RawBank]:
    """The banks of a sub-slice: hits of each source, empty ones included, and the truth."""
    made = _stream_of(sample).sub_slice(number)
    return [
        *(hits_bank(source, hits) for source, hits in enumerate(made.hits)),
        *(true_ids_bank(source, ids) for source, ids in enumerate(made.ids)),
        true_particles_bank(made.particles),
        true_decays_bank(made.decays),
    ]


def empty_sub_slice() -> list[RawBank]:
    """The banks of a sub-slice without hits and truth."""
    return [hits_bank(source, np.empty(0, HIT)) for source in range(SOURCES)]


def encode_block(sample: PixelSample, first: int, n: int) -> bytes:
    """Sub-slices first ... first + n - 1 as MDF records."""
    made = (sub_slice_banks(sample, number) for number in range(first, first + n))
    return b"".join(encode_record(encode_banks(banks), run=sample.request.run) for banks in made)


def encode_slice_of(sample: PixelSample, n_stream: int, first: int, n: int) -> bytes:  # noqa: ARG001
    """The time slice of a file that begins with sub-slice `first` of a stream of `n_stream` ones."""
    return encode_slice(sample, first // SUB_SLICES_PER_BLOCK, SUB_SLICES_PER_BLOCK, n_stream)


def encode_slice(sample: PixelSample, number: int, core: int, n_stream: int) -> bytes:
    """Time slice `number` of a stream of `n_stream` sub-slices as a MEP: `core` sub-slices between its margins.

    Sub-slices before and behind the stream are empty.
    """
    first = number * core
    events: list[Sequence[RawBank]] = [
        [
            encode_odin(Odin(run=sample.request.run, event_id=max(i, 0))),
            *(sub_slice_banks(sample, i) if 0 <= i < n_stream else empty_sub_slice()),
        ]
        for i in range(first - MARGIN_BEFORE, first + core + MARGIN_BEHIND)
    ]
    return encode_mep(list(mfps_of_events(MU3E_READOUT, EventTable.of_events(events), number).values()))
