"""Time slices of a simulated stream as files, for `hltnode simulate`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from hltnode.processing.km3net import detector_constants
from hltnode.processing.km3net.chain import STREAMING
from hltnode.processing.km3net.geometry import detx, pmt_table
from hltnode.processing.km3net.geometry.detector import detector_of
from hltnode.processing.km3net.offline.simulation import muons, stream
from hltnode.processing.km3net.offline.simulation.stream import Conditions, HitStream, source_of_pmts
from hltnode.processing.km3net.readout import TELESCOPE_READOUT
from hltnode.processing.offline import stream_sample
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.sample_cache import NamedSample, digest_of_files
from hltnode.processing.offline.stream_sample import StreamSample
from hltnode.protocol.km3net.hit_banks import HIT, hits_bank, ordered_by_pmt, truth_bank
from hltnode.protocol.raw_data.raw_bank import RawBank


@dataclass(frozen=True, slots=True, kw_only=True)
class TelescopeOptions:
    """The options of `hltnode simulate` that this chain has of its own."""

    pmt_rate: Annotated[float, typer.Option("--pmt-rate", min=0.0, max=1e7, help="Hz of single hits of a PMT.")] = (
        55_000.0
    )
    coincidences: Annotated[
        float, typer.Option("--coincidences", min=0.0, max=1e6, help="Hz of decays that hit two adjacent PMTs.")
    ] = 20.0
    bright: Annotated[int, typer.Option("--bright", min=0, max=1000, help="PMTs with bioluminescence.")] = 2
    bright_rate: Annotated[float, typer.Option("--bright-rate", min=0.0, max=1e7, help="Their rate in Hz.")] = 1e6
    muon_rate: Annotated[float, typer.Option("--muon-rate", min=0.0, max=1e6, help="Muons in Hz.")] = 2_000.0
    radius: Annotated[
        float, typer.Option("--radius", min=0.0, max=1000.0, help="m from the middle in which muons pass.")
    ] = 60.0

    def conditions(self) -> Conditions:
        """What the simulation needs."""
        return Conditions(
            rate=self.pmt_rate,
            coincidences=self.coincidences,
            bright_pmts=self.bright,
            bright_rate=self.bright_rate,
            muon_rate=self.muon_rate,
            radius=self.radius,
        )


@dataclass(frozen=True, slots=True)
class TelescopeSample(StreamSample):
    """The sub-slices of a request; one is an event of the file."""

    own: TelescopeOptions
    readout: ClassVar = TELESCOPE_READOUT
    streaming: ClassVar = STREAMING

    @property
    def name(self) -> str:
        """A short name for files."""
        return "telescope"

    @property
    def identity(self) -> dict[str, Any]:
        """The request and the code."""
        modules = (muons, stream, stream_sample, detector_constants, pmt_table, detx)
        files = [Path(__file__), *(Path(str(module.__file__)) for module in modules)]
        geometry = self.request.geometry
        return {
            "seed": self.request.seed,
            "run": self.request.run,
            "file_format": self.request.file_format,
            "geometry": None if geometry is None else digest_of_files(sorted(geometry.glob("*.detx"))),
            **self.description,
            "code": digest_of_files(files),
        }

    @property
    def description(self) -> dict[str, Any]:
        """The chain's own options."""
        return asdict(self.own)

    def check(self) -> None:
        """Raise ValueError for a geometry that cannot be read."""
        _stream_of(self)

    def sub_slice(self, number: int) -> list[RawBank]:
        """The banks of a sub-slice."""
        return sub_slice_banks(self, number)

    def empty_sub_slice(self) -> list[RawBank]:
        """The banks of a sub-slice without hits and truth."""
        return banks_of_hits(_stream_of(self), np.empty(0, HIT))


class TelescopeSimulation:
    """Hits of a tower, or of the detector of a geometry: potassium 40, bioluminescence and muons."""

    options = TelescopeOptions
    named_samples: Mapping[str, NamedSample] = {
        "telescope": NamedSample(events=4000, options={}, description="0.1 s of hits of an underwater telescope")
    }

    def sample(self, request: SampleRequest, options: TelescopeOptions) -> TelescopeSample:
        """The sample of a request."""
        return TelescopeSample(request, options)


@cache
def _stream_of(sample: TelescopeSample) -> HitStream:
    return HitStream(detector_of(sample.request.geometry), sample.own.conditions(), sample.request.seed)


def banks_of_hits(made: HitStream, hits: NDArray[Any]) -> list[RawBank]:
    """The banks of HIT[hits] of a sub-slice: one for each source, empty ones included."""
    of_pmts = source_of_pmts(made.detector)
    source = of_pmts[hits["pmt"]]
    return [hits_bank(i, ordered_by_pmt(hits[source == i])) for i in range(int(of_pmts.max()) + 1)]


def sub_slice_banks(sample: TelescopeSample, number: int) -> list[RawBank]:
    """The banks of a sub-slice."""
    made = _stream_of(sample)
    hits, true = made.hits(number)
    return [*banks_of_hits(made, hits), truth_bank(true)]
