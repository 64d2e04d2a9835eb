"""Samples of simulated events, for `hltnode simulate`, `demo` and `replay --simulate`."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hltnode.processing.na62 import detector_constants
from hltnode.processing.na62.offline.simulation import decays, events
from hltnode.processing.na62.offline.simulation.decays import Decay
from hltnode.processing.na62.offline.simulation.events import Conditions, simulated_event
from hltnode.processing.na62.readout import RICH_READOUT
from hltnode.processing.na62.rich import pmt_positions
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.sample_cache import NamedSample, digest_of_files
from hltnode.processing.offline.worker_processes import encoded_blocks
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.mfp_packing import mfps_of_events
from hltnode.protocol.na62.rich_banks import hits_bank, truth_bank
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

EVENTS_PER_BLOCK = 256
MAX_TRACKS = 6


class DecayName(StrEnum):
    """Decays that a user may choose."""

    KAON = "kaon"
    """A decay by its branching fraction."""
    MUON = "munu"
    TWO_PIONS = "pipi0"
    THREE_PIONS = "3pi"
    TRACKS = "tracks"


_DECAYS = {
    DecayName.KAON: None,
    DecayName.MUON: Decay.MUON,
    DecayName.TWO_PIONS: Decay.TWO_PIONS,
    DecayName.THREE_PIONS: Decay.THREE_PIONS,
    DecayName.TRACKS: Decay.TRACKS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RichOptions:
    """The options of `hltnode simulate` that this chain has of its own."""

    decay: Annotated[DecayName, typer.Option("--decay", help="Decay of the kaon, or tracks of any direction.")] = (
        DecayName.KAON
    )
    tracks: Annotated[int, typer.Option("--tracks", min=0, max=MAX_TRACKS, help="Tracks with --decay tracks.")] = 1
    distance: Annotated[
        float | None,
        typer.Option("--distance", min=0.0, max=300.0, help="mm from the first ring to others, with --decay tracks."),
    ] = None
    photons: Annotated[
        float, typer.Option("--photons", min=0.0, max=60.0, help="Mean number of detected photons of a ring.")
    ] = 20.0
    accidentals: Annotated[
        float, typer.Option("--accidentals", min=0.0, max=5.0, help="Mean number of accidental rings.")
    ] = 0.05
    noise: Annotated[float, typer.Option("--noise", min=0.0, max=60.0, help="Mean number of hits without light.")] = 1.0
    showers: Annotated[
        float, typer.Option("--showers", min=0.0, max=1.0, help="Probability of a shower, which gives many hits.")
    ] = 0.02

    def conditions(self) -> Conditions:
        """What the simulation needs."""
        return Conditions(
            decay=_DECAYS[self.decay],
            rings=self.tracks,
            distance=self.distance,
            hits_per_ring=self.photons,
            accidentals=self.accidentals,
            noise=self.noise,
            showers=self.showers,
        )


@dataclass(frozen=True, slots=True)
class RichSample:
    """The events of a request."""

    request: SampleRequest
    own: RichOptions

    @property
    def name(self) -> str:
        """A short name for files."""
        return f"rich-{self.own.decay.value}"

    @property
    def identity(self) -> dict[str, Any]:
        """The request and the code."""
        modules = (decays, events, detector_constants, pmt_positions)
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
        return {**asdict(self.own), "decay": self.own.decay.value}

    def blocks(self, n: int, jobs: int) -> Generator[tuple[int, bytes]]:
        """Blocks of MDF records, or MEPs. Raises ValueError for a geometry."""
        if self.request.geometry is not None:
            raise ValueError(f"{self.request.geometry}: the simulation of chain na62_rich has the built-in tubes only")
        yield from encoded_blocks(partial(encode_block, self), n, EVENTS_PER_BLOCK, jobs)

    def events(self, n: int) -> Iterator[list[RawBank]]:
        """Raw banks of the first n events."""
        return (event_banks(self, number) for number in range(n))


class RichSimulation:
    """Decays of kaons in flight, their Cherenkov light, noise, showers and accidental tracks."""

    options = RichOptions
    named_samples: Mapping[str, NamedSample] = {
        "rich": NamedSample(events=5000, options={}, description="kaon decays in the RICH of NA62")
    }

    def sample(self, request: SampleRequest, options: RichOptions) -> RichSample:
        """The sample of a request."""
        return RichSample(request, options)


def encode_block(sample: RichSample, first: int, n: int) -> bytes:
    """Events first ... first + n - 1 as MDF records, or as one MEP, whose first source is ODIN."""
    made = [event_banks(sample, number) for number in range(first, first + n)]
    if sample.request.file_format == "mep":
        events = [
            [encode_odin(Odin(run=sample.request.run, event_id=first + i)), *banks] for i, banks in enumerate(made)
        ]
        return encode_mep(list(mfps_of_events(RICH_READOUT, EventTable.of_events(events), first).values()))
    return b"".join(encode_record(encode_banks(banks), run=sample.request.run) for banks in made)


def event_banks(sample: RichSample, number: int) -> list[RawBank]:
    """The banks of an event. Each event has random numbers of its own, so that it is the same in any block."""
    rng = np.random.default_rng((sample.request.seed, number))
    hits, rings = simulated_event(rng, sample.own.conditions())
    return [hits_bank(hits), truth_bank(rings)]
