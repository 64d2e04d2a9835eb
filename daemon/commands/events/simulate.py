"""hltnode simulate: simulates events with truth and writes them as genuine raw banks."""

import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    GeometryOption,
    JsonOption,
    complete_file,
    console,
    require_writable,
    thread_count,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.result_files import result_file
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.tool_command import tool_command
from hltnode.processing.offline.chain_tools import DEFAULT_RUN, FileFormat, SampleRequest, SimulatedSample, Simulation


@tool_command("simulation")
def simulate(
    tool: Simulation[Any],
    own: Any,
    n: Annotated[int, typer.Option("-n", "--events", min=1, help="Number of events.")],
    output: Annotated[
        Path,
        result_file(
            "-o", "--output", metavar="FILE.mdf|.mep", help="File to write; the suffix .mdf or .mep selects the format."
        ),
    ],
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same events.")] = 1,
    jobs: Annotated[
        int, typer.Option("--jobs", min=0, help="Processes; 0: one per core. The events do not depend on it.")
    ] = 1,
    run: Annotated[int, typer.Option("--run", min=0, max=0xFFFFFFFF, help="Run number.")] = DEFAULT_RUN,
    geometry: GeometryOption = None,
    json: JsonOption = None,
    chain: ChainOption = DEFAULT_CHAIN,  # noqa: ARG001 - chose the tool
) -> None:
    """Simulate events with truth and write them to an MDF or MEP file.

    Example: hltnode simulate -n 2000 --seed 1 -o minbias.mdf
    """
    with user_errors():
        request = SampleRequest(seed=seed, run=run, geometry=geometry, file_format=_format_of(output))
        sample = tool.sample(request, own)
        require_writable(output, json)
        begin = time.perf_counter()
        nbytes = _write(sample, n, thread_count(jobs), output)
        seconds = time.perf_counter() - begin
        write_json(
            json,
            {
                "file": str(output),
                **sample.description,
                "events": n,
                "bytes": nbytes,
                "seed": seed,
                "run": run,
                "seconds": seconds,
                "events_per_second": n / seconds,
            },
        )
    echo(f"{n} events, {nbytes} bytes, {n / seconds:.0f} events/s: {output}")


def _format_of(output: Path) -> FileFormat:
    match output.suffix:
        case ".mdf":
            return "mdf"
        case ".mep":
            return "mep"
    raise ValueError(f"{output}: expected a name that ends in .mdf or .mep")


def _write(sample: SimulatedSample, n: int, jobs: int, output: Path) -> int:
    """Write the events to a file; returns its size in bytes."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    nbytes = 0
    with (
        closing(sample.blocks(n, jobs)) as made,
        complete_file(output) as file,
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        bar = progress.add_task("simulating", total=n)
        for size, block in made:
            nbytes += file.write(block)
            progress.advance(bar, size)
    return nbytes
