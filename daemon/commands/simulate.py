"""hltnode simulate: events with truth, written as genuine raw banks."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from hltnode.daemon.commands.common import GeometryOption, JsonOption, console, load_geometry, user_errors, write_json
from hltnode.processing.simulation.velo_generator import DEFAULT_NU, DEFAULT_RUN, simulate_events
from hltnode.protocol.mdf import encode_record
from hltnode.protocol.raw_bank import encode_banks


class VeloEncodingOption(StrEnum):
    """How the VELO banks are written."""

    RETINA = "retina"
    SUPERPIXEL = "superpixel"


def simulate(
    n: Annotated[int, typer.Option("-n", "--events", min=1, help="Number of events.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.mdf", help="File to write.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same events.")] = 1,
    nu: Annotated[float, typer.Option("--nu", help="Mean number of collisions per event.")] = DEFAULT_NU,
    run: Annotated[int, typer.Option("--run", min=0, help="Run number.")] = DEFAULT_RUN,
    velo_banks: Annotated[VeloEncodingOption, typer.Option("--velo-banks", help="VELO encoding.")] = (
        VeloEncodingOption.RETINA
    ),
    geometry: GeometryOption = None,
    json: JsonOption = None,
) -> None:
    """Simulate minimum-bias events in the VELO, with truth, and write them to an MDF file.

    Example: hltnode simulate -n 2000 --seed 1 -o minbias.mdf
    """
    with user_errors():
        events = simulate_events(n, seed, geometry=load_geometry(geometry), nu=nu, run=run, velo_banks=velo_banks.value)
        begin = time.perf_counter()
        unfinished = output.with_name(output.name + ".part")
        nbytes = 0
        with unfinished.open("wb") as file:
            for banks in track(events, total=n, console=console, transient=True, description="simulating"):
                nbytes += file.write(encode_record(encode_banks(banks), run=run))
        unfinished.rename(output)
        seconds = time.perf_counter() - begin
        write_json(
            json,
            {
                "file": str(output),
                "events": n,
                "bytes": nbytes,
                "seed": seed,
                "nu": nu,
                "run": run,
                "seconds": seconds,
                "events_per_second": n / seconds,
            },
        )
    typer.echo(f"{n} events, {nbytes} bytes, {n / seconds:.0f} events/s: {output}")
