"""hltnode simulate: events with truth, written as genuine raw banks."""

import time
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hltnode.daemon.commands.common import (
    GeometryOption,
    JsonOption,
    complete_file,
    console,
    require_writable,
    thread_count,
    user_errors,
    write_json,
)
from hltnode.processing.lhcb.geometry.magnet import DOWN, UP
from hltnode.processing.lhcb.offline.simulation.blocks import FileFormat, SimulationRequest, blocks
from hltnode.processing.lhcb.offline.simulation.full_generator import BankVersions
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.offline.simulation.velo_generator import DEFAULT_NU, DEFAULT_RUN


class VeloEncodingOption(StrEnum):
    """How the VELO banks are written."""

    RETINA = "retina"
    SUPERPIXEL = "superpixel"


class DetectorsOption(StrEnum):
    """Which detectors are simulated."""

    VELO = "velo"
    FULL = "full"


class PolarityOption(StrEnum):
    """Direction of the magnetic field."""

    DOWN = "down"
    UP = "up"


def simulate(
    n: Annotated[int, typer.Option("-n", "--events", min=1, help="Number of events.")],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE.mdf|.mep", help="File to write; its suffix, .mdf or .mep, is the format."
        ),
    ],
    sample: Annotated[Sample, typer.Option("--sample", help="Minimum bias, or one signal decay per event.")] = (
        Sample.MINBIAS
    ),
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same events.")] = 1,
    nu: Annotated[float, typer.Option("--nu", help="Mean number of collisions per event.")] = DEFAULT_NU,
    detectors: Annotated[DetectorsOption, typer.Option("--detectors", help="All, or the VELO alone (faster).")] = (
        DetectorsOption.FULL
    ),
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Processes; 0: one per core. Changes no event.")] = 1,
    run: Annotated[int, typer.Option("--run", min=0, max=0xFFFFFFFF, help="Run number.")] = DEFAULT_RUN,
    velo_banks: Annotated[VeloEncodingOption, typer.Option("--velo-banks", help="VELO encoding.")] = (
        VeloEncodingOption.RETINA
    ),
    velo_version: Annotated[
        int, typer.Option("--velo-version", help="Version of the VELO banks (retina 3, 4; superpixel 2-4); 0: lowest.")
    ] = 0,
    ut_version: Annotated[int, typer.Option("--ut-version", help="Version of the UT banks: 3 or 4.")] = 3,
    polarity: Annotated[
        PolarityOption | None,
        typer.Option("--polarity", help="Polarity of the magnet; as in the geometry if not given."),
    ] = None,
    input_hepmc: Annotated[
        Path | None, typer.Option("--input-hepmc", metavar="FILE", help="Generated events instead of a sample.")
    ] = None,
    geometry: GeometryOption = None,
    json: JsonOption = None,
) -> None:
    """Simulate events with truth and write them to an MDF or MEP file.

    Example: hltnode simulate --sample minbias -n 2000 --seed 1 -o minbias.mdf
    """
    with user_errors():
        request = SimulationRequest(
            sample=sample,
            nu=nu,
            seed=seed,
            run=run,
            detectors=detectors.value,
            versions=BankVersions(velo=velo_banks.value, velo_version=velo_version, ut_version=ut_version),
            file_format=_format_of(output),
            geometry=geometry,
            hepmc=input_hepmc,
            polarity=None if polarity is None else {PolarityOption.DOWN: DOWN, PolarityOption.UP: UP}[polarity],
        )
        require_writable(output, json)
        begin = time.perf_counter()
        nbytes = _write(request, n, thread_count(jobs), output)
        seconds = time.perf_counter() - begin
        write_json(
            json,
            {
                "file": str(output),
                "sample": None if input_hepmc else sample.value,
                "hepmc": str(input_hepmc) if input_hepmc else None,
                "events": n,
                "bytes": nbytes,
                "seed": seed,
                "nu": nu,
                "run": run,
                "detectors": detectors.value,
                "seconds": seconds,
                "events_per_second": n / seconds,
            },
        )
    typer.echo(f"{n} events, {nbytes} bytes, {n / seconds:.0f} events/s: {output}")


def _format_of(output: Path) -> FileFormat:
    match output.suffix:
        case ".mdf":
            return "mdf"
        case ".mep":
            return "mep"
    raise ValueError(f"{output}: the name must end in .mdf or .mep")


def _write(request: SimulationRequest, n: int, jobs: int, output: Path) -> int:
    """Write the events to a file; returns its size in bytes."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    nbytes = 0
    with (
        closing(blocks(request, n, jobs)) as made,
        complete_file(output) as file,
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        bar = progress.add_task("simulating", total=n)
        for size, block in made:
            nbytes += file.write(block)
            progress.advance(bar, size)
    return nbytes
