"""Simulated events of LHCb, for the commands that need events with truth."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hltnode import protocol
from hltnode.processing import offline
from hltnode.processing.lhcb import geometry
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.magnet import DOWN, UP
from hltnode.processing.lhcb.offline import simulation
from hltnode.processing.lhcb.offline.simulation import _native
from hltnode.processing.lhcb.offline.simulation.banks.detector_encoding import BankVersions
from hltnode.processing.lhcb.offline.simulation.blocks import SimulationRequest, blocks, events_of
from hltnode.processing.lhcb.offline.simulation.generation.samples import SIGNALS, Sample
from hltnode.processing.lhcb.offline.simulation.velo_generator import DEFAULT_NU
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.sample_cache import NamedSample, digest_of_files
from hltnode.processing.selection.configuration.conditions_folder import ConditionsFolder
from hltnode.protocol.lhcb.bank_versions import UtVersion
from hltnode.protocol.lhcb.readout import VeloEncoding
from hltnode.protocol.raw_data.raw_bank import RawBank


class VeloEncodingOption(StrEnum):
    """How the VELO banks are written."""

    RETINA = "retina"
    SUPERPIXEL = "superpixel"


class BanksOption(StrEnum):
    """Which bank versions are written."""

    SIMULATION = "simulation"
    DATA = "data"


class DetectorsOption(StrEnum):
    """Which detectors are simulated."""

    VELO = "velo"
    FULL = "full"


class PolarityOption(StrEnum):
    """Direction of the magnetic field."""

    DOWN = "down"
    UP = "up"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """The options of `hltnode simulate` that LHCb has of its own."""

    sample: Annotated[
        Sample,
        typer.Option("--sample", help="Minimum bias, one signal decay per event, or collisions with gas or of ions."),
    ] = Sample.MINBIAS
    enrich: Annotated[
        bool,
        typer.Option(
            "--enrich",
            help="Draw events of rare kinds more often: hard beauty and charm, strange decays, muons, many collisions. "
            "Each event has a weight, which rates use.",
        ),
    ] = False
    nu: Annotated[float, typer.Option("--nu", help="Mean number of collisions per event.")] = DEFAULT_NU
    detectors: Annotated[DetectorsOption, typer.Option("--detectors", help="All, or the VELO alone (faster).")] = (
        DetectorsOption.FULL
    )
    banks: Annotated[
        BanksOption,
        typer.Option(
            "--banks",
            help="Versions of the simulation, or of data taking: VELO 4, UT 4, SciFi 8, Muon 3, with the source ids of "
            "the readout boards.",
        ),
    ] = BanksOption.SIMULATION
    velo_banks: Annotated[VeloEncodingOption, typer.Option("--velo-banks", help="VELO encoding.")] = (
        VeloEncodingOption.RETINA
    )
    velo_version: Annotated[
        int,
        typer.Option("--velo-version", help="Version of the VELO banks (retina 3, 4; superpixel 2-4); 0: as --banks."),
    ] = 0
    ut_version: Annotated[int, typer.Option("--ut-version", help="Version of the UT banks: 3, 4, or 0 as --banks.")] = 0
    polarity: Annotated[
        PolarityOption | None,
        typer.Option("--polarity", help="Polarity of the magnet; as in the geometry if not given."),
    ] = None
    luminosity: Annotated[
        bool,
        typer.Option(
            "--luminosity",
            help="Events for luminosity: ODIN marks them, their crossings may lack one or both beams, and they have a "
            "bank of the luminometer PLUME.",
        ),
    ] = False
    conditions: Annotated[
        Path | None,
        typer.Option(
            "--conditions",
            metavar="DIR",
            help="Folder of conditions: beam, VELO positions and polarity of the run. Masked channels are simulated.",
        ),
    ] = None
    input_hepmc: Annotated[
        Path | None, typer.Option("--input-hepmc", metavar="FILE", help="Generated events instead of a sample.")
    ] = None


@dataclass(frozen=True, slots=True)
class LhcbSample:
    """The events of a request."""

    request: SimulationRequest

    @property
    def name(self) -> str:
        """The kind of the events."""
        kind = "hepmc" if self.request.hepmc else self.request.sample.value
        return f"{kind}-enriched" if self.request.enrich else kind

    @property
    def identity(self) -> dict[str, Any]:
        """The request with the contents of its files, and the code."""
        request = asdict(self.request)
        files = {name: path for name in ("geometry", "hepmc") if (path := request[name]) is not None}
        return request | {name: digest_of_files([path]) for name, path in files.items()} | {"code": _code()}

    @property
    def description(self) -> dict[str, Any]:
        """What LHCb's own options chose."""
        request = self.request
        return {
            "sample": None if request.hepmc else request.sample.value,
            "enrich": request.enrich,
            "hepmc": str(request.hepmc) if request.hepmc else None,
            "nu": request.nu,
            "detectors": request.detectors,
            "luminosity": request.luminosity,
        }

    def blocks(self, n: int, jobs: int) -> Generator[tuple[int, bytes]]:
        """See hltnode.processing.lhcb.offline.simulation.blocks."""
        return blocks(self.request, n, jobs)

    def events(self, n: int) -> Iterator[list[RawBank]]:
        """See hltnode.processing.lhcb.offline.simulation.blocks."""
        return events_of(self.request, n)


def _description(sample: Sample) -> str:
    return "one signal decay per event" if sample in SIGNALS else "one collision with gas or of ions per event"


class LhcbSimulation:
    """Collisions, decays, detectors and banks of LHCb."""

    options = SimulationOptions
    named_samples: Mapping[str, NamedSample] = {
        "minbias": NamedSample(events=5000, options={}, description="minimum bias"),
        "minbias-enriched": NamedSample(
            events=5000, options={"enrich": True}, description="minimum bias, rare kinds more often, with weights"
        ),
        **{
            sample.value: NamedSample(events=500, options={"sample": sample}, description=_description(sample))
            for sample in Sample
            if sample is not Sample.MINBIAS
        },
    }

    def sample(self, request: SampleRequest, options: SimulationOptions) -> LhcbSample:
        """The sample of a request."""
        polarity = None if options.polarity is None else _POLARITIES[options.polarity]
        return LhcbSample(
            SimulationRequest(
                sample=options.sample,
                enrich=options.enrich,
                nu=options.nu,
                seed=request.seed,
                run=request.run,
                detectors=options.detectors.value,
                versions=_versions(options),
                file_format=request.file_format,
                geometry=request.geometry,
                hepmc=options.input_hepmc,
                polarity=polarity,
                luminosity=options.luminosity,
                conditions=_conditions(options.conditions, request.run),
            )
        )


def _versions(options: SimulationOptions) -> BankVersions:
    """Raises ValueError for a version that cannot be written."""
    velo: VeloEncoding = options.velo_banks.value
    if options.banks is BanksOption.DATA:
        return BankVersions.of_data_taking(velo=velo, velo_version=options.velo_version, ut_version=options.ut_version)
    ut_version = options.ut_version or UtVersion.CLUSTERS
    return BankVersions(velo=velo, velo_version=options.velo_version, ut_version=ut_version)


def _conditions(path: Path | None, run: int) -> tuple[tuple[str, float], ...]:
    """Those of a run that are numbers. Raises ConditionsError for an invalid folder and a run without conditions."""
    if path is None:
        return ()
    values = ConditionsFolder.load(path, CHAIN.name, CHAIN.conditions).values_of(run)
    return tuple((name, value) for name, value in values if not isinstance(value, tuple))


@cache
def _code() -> str:
    """Digest of the modules that make events, and of the release of NumPy, whose random numbers may change."""
    modules = (simulation, geometry, offline, protocol)
    folders = [Path(str(module.__file__)).parent for module in modules]
    return digest_of_files([*folders, Path(str(_native.__file__))]) + np.__version__


_POLARITIES = {PolarityOption.DOWN: DOWN, PolarityOption.UP: UP}
