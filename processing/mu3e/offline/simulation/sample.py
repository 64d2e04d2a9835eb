"""Time slices of a simulated stream as files, for `hltnode simulate`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer

from hltnode.processing.mu3e import detector_constants
from hltnode.processing.mu3e.chain import STREAMING
from hltnode.processing.mu3e.geometry import sensor_table
from hltnode.processing.mu3e.geometry.sensor_table import SOURCES
from hltnode.processing.mu3e.offline.simulation import decays, flight, phase_space, stream
from hltnode.processing.mu3e.offline.simulation.stream import Conditions, HitStream
from hltnode.processing.mu3e.readout import MU3E_READOUT
from hltnode.processing.offline import stream_sample
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.sample_cache import NamedSample, digest_of_files
from hltnode.processing.offline.stream_sample import StreamSample
from hltnode.protocol.mu3e.hit_banks import (
    HIT,
    DecayKind,
    hits_bank,
    true_decays_bank,
    true_ids_bank,
    true_particles_bank,
)
from hltnode.protocol.raw_data.raw_bank import RawBank


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
class PixelSample(StreamSample):
    """The sub-slices of a request; one is an event of the file."""

    own: PixelOptions
    readout: ClassVar = MU3E_READOUT
    streaming: ClassVar = STREAMING

    @property
    def name(self) -> str:
        """A short name for files."""
        return f"mu3e-{self.own.sample}"

    @property
    def identity(self) -> dict[str, Any]:
        """The request and the code."""
        modules = (decays, flight, phase_space, stream, stream_sample, detector_constants, sensor_table)
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

    def check(self) -> None:
        """Raise ValueError for a geometry."""
        _stream_of(self)

    def sub_slice(self, number: int) -> list[RawBank]:
        """The banks of a sub-slice."""
        return sub_slice_banks(self, number)

    def empty_sub_slice(self) -> list[RawBank]:
        """The banks of a sub-slice without hits and truth."""
        return [hits_bank(source, np.empty(0, HIT)) for source in range(SOURCES)]


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
