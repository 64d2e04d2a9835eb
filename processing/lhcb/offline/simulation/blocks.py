"""Simulated events in blocks, encoded as MDF records or MEPs, by this process or by several ones."""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Literal

from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_halves import with_positions
from hltnode.processing.lhcb.offline.simulation.banks.detector_encoding import BankVersions
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.hepmc_source import HepmcSource
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.velo_generator import DEFAULT_NU, DEFAULT_RUN, simulate_events
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.processing.offline.worker_processes import results_in_order
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.mfp_packing import mfps_of_events
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

# Events of a block, and so of a MEP: the blocks of a request are the same, however many processes make them.
EVENTS_PER_BLOCK = 64

FileFormat = Literal["mdf", "mep"]
Detectors = Literal["velo", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRequest:
    """All that the events of a file depend on.

    `enrich`: draw rare kinds of minimum bias more often, with weights; `geometry`: folder of geometry files, built-in
    if None; `hepmc`: file of generated events instead of a sample; `polarity`: of the magnet, -1 down, +1 up, None as
    in the geometry; `luminosity`: events for luminosity, in crossings of all types; `conditions`: name and value of
    each condition that moves the beam, the VELO or the field.
    """

    sample: Sample = Sample.MINBIAS
    enrich: bool = False
    nu: float = DEFAULT_NU
    seed: int
    run: int = DEFAULT_RUN
    detectors: Detectors = "full"
    versions: BankVersions = field(default_factory=BankVersions)
    file_format: FileFormat = "mdf"
    geometry: Path | None = None
    hepmc: Path | None = None
    polarity: float | None = None
    luminosity: bool = False
    conditions: tuple[tuple[str, float], ...] = ()


def blocks(request: SimulationRequest, n: int, jobs: int) -> Generator[tuple[int, bytes]]:
    """Number of events and encoded bytes of each block of events 0 ... n - 1, in order, independent of the number of
    jobs.

    Events of a HepMC file, which must be read in order, are made by this process. Raises GeometryError, HepmcError and
    ValueError for a request that cannot be fulfilled, ChildProcessError if the system kills a worker.
    """
    starts = range(0, n, EVENTS_PER_BLOCK)
    sizes = [min(EVENTS_PER_BLOCK, n - start) for start in starts]
    if jobs == 1 or request.hepmc is not None:
        for start, size in zip(starts, sizes, strict=True):
            yield size, encode_block(request, start, size)
        return
    # Errors of the request are raised here, before processes start.
    _simulation(request)
    tasks = list(zip(starts, sizes, strict=True))
    with closing(results_in_order(partial(encode_block, request), tasks, jobs)) as made:
        yield from zip(sizes, made, strict=True)


def events_of(request: SimulationRequest, n: int) -> Iterator[list[RawBank]]:
    """Banks of events 0 ... n - 1, made by this process. Raises as `blocks` does."""
    return _simulation(request).events(n, request.seed, first_event=0)


def encode_block(request: SimulationRequest, first_event: int, n: int) -> bytes:
    """Events first_event ... first_event + n - 1 as MDF records or as one MEP."""
    events = _simulation(request).events(n, request.seed, first_event=first_event)
    if request.file_format == "mep":
        table = EventTable.of_events(list(events))
        return encode_mep(list(mfps_of_events(LHCB_READOUT, table, first_event).values()))
    return b"".join(encode_record(encode_banks(banks), run=request.run) for banks in events)


@cache
def _simulation(request: SimulationRequest) -> "FullSimulation | _VeloSimulation":
    """The simulation of a request; made once per process."""
    if request.detectors == "velo":
        return _VeloSimulation(request)
    if request.hepmc is not None and request.sample is not Sample.MINBIAS:
        raise ValueError(f"events come from {request.hepmc} or from the sample {request.sample}, not from both")
    if request.hepmc is not None and request.enrich:
        raise ValueError("only minimum bias can be enriched, not the events of a file")
    detector = Detector.builtin() if request.geometry is None else Detector.load(request.geometry)
    detector = detector.with_conditions(dict(request.conditions)).with_polarity(request.polarity)
    beamline = detector.velo.beamline
    source = (
        sample_source(request.sample, request.nu, beamline, enrich=request.enrich)
        if request.hepmc is None
        else HepmcSource(request.hepmc, request.nu, beamline)
    )
    return FullSimulation(detector, source, run=request.run, versions=request.versions, luminosity=request.luminosity)


class _VeloSimulation:
    """Minimum-bias events in the VELO alone, which is faster."""

    def __init__(self, request: SimulationRequest) -> None:
        if request.sample is not Sample.MINBIAS or request.hepmc is not None:
            raise ValueError("the VELO alone simulates minimum-bias events; other events need all detectors")
        if request.versions != BankVersions(velo=request.versions.velo):
            raise ValueError("the VELO alone writes the default versions of its banks")
        if request.luminosity:
            raise ValueError("the VELO alone has no luminometer: events for luminosity need all detectors")
        if request.polarity is not None:
            raise ValueError("the VELO alone has no magnet: a polarity needs all detectors")
        self._request = request
        directory = request.geometry
        nominal = VeloGeometry.builtin() if directory is None else VeloGeometry.load(directory)
        self._geometry = with_positions(nominal, dict(request.conditions))

    def events(self, n: int, seed: int, *, first_event: int) -> Iterator[list[RawBank]]:
        """Banks of events first_event ... first_event + n - 1."""
        it = self._request
        return simulate_events(
            n,
            seed,
            geometry=self._geometry,
            nu=it.nu,
            enrich=it.enrich,
            velo_banks=it.versions.velo,
            run=it.run,
            first_event=first_event,
        )
