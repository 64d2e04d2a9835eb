"""hltnode simulate: simulates events with truth and writes them as genuine raw banks."""

import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from hltnode.daemon.commands.cached_samples import MEGABYTE
from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    GeometryOption,
    JsonOption,
    complete_file,
    require_writable,
    thread_count,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.progress import event_progress
from hltnode.daemon.commands.result_files import result_file
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.tool_command import tool_command
from hltnode.processing.offline.chain_tools import DEFAULT_RUN, FileFormat, SampleRequest, SimulatedSample, Simulation
from hltnode.processing.offline.named_samples import cached_sample, counted
from hltnode.processing.offline.sample_cache import SampleCache, user_cache


@tool_command("simulation")
def simulate(
    tool: Simulation[Any],
    own: Any,
    n: Annotated[int | None, typer.Option("-n", "--events", min=1, help="Number of events.")] = None,
    output: Annotated[
        Path | None,
        result_file(
            "-o", "--output", metavar="FILE.mdf|.mep", help="File to write; the suffix .mdf or .mep selects the format."
        ),
    ] = None,
    cached: Annotated[
        bool,
        typer.Option(
            "--cached",
            help="Write to the user's cache ($XDG_CACHE_HOME/hltnode/samples) unless the same sample is there.",
        ),
    ] = False,
    clear_cache: Annotated[
        bool, typer.Option("--clear-cache", help="Remove all samples of the cache, and make none.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same events.")] = 1,
    jobs: Annotated[
        int, typer.Option("--jobs", min=0, help="Processes; 0: one per core. The events do not depend on it.")
    ] = 1,
    run: Annotated[int, typer.Option("--run", min=0, max=0xFFFFFFFF, help="Run number.")] = DEFAULT_RUN,
    geometry: GeometryOption = None,
    json: JsonOption = None,
    chain: ChainOption = DEFAULT_CHAIN,  # noqa: ARG001 - chose the tool
) -> None:
    """Simulate events with truth and write them to an MDF or MEP file, or to the user's cache.

    Examples: hltnode simulate -n 2000 --seed 1 -o minbias.mdf;
    hltnode simulate -n 5000 --enrich --cached --jobs 0
    """
    with user_errors():
        if clear_cache:
            samples, nbytes = SampleCache(user_cache()).clear()
            echo(f"{samples} samples, {nbytes / MEGABYTE:.0f} MB, removed from {user_cache()}")
            return
        if n is None:
            raise ValueError("expected -n, the number of events")
        if cached is (output is not None):
            raise ValueError("expected one of -o FILE and --cached")
        file_format: FileFormat = "mdf" if output is None else _format_of(output)
        sample = tool.sample(SampleRequest(seed=seed, run=run, geometry=geometry, file_format=file_format), own)
        require_writable(output, json)
        begin = time.perf_counter()
        made = True
        if output is None:
            of_cache = cached_sample(sample, n, thread_count(jobs), event_progress)
            output, made = of_cache.path, of_cache.made
        else:
            _write(sample, n, thread_count(jobs), output)
        nbytes = output.stat().st_size
        seconds = time.perf_counter() - begin
        write_json(
            json,
            {
                "file": str(output),
                **sample.description,
                "events": n,
                "bytes": nbytes,
                "made": made,
                "seed": seed,
                "run": run,
                "seconds": seconds,
                "events_per_second": n / seconds,
            },
        )
    speed = f"{n / seconds:.0f} events/s" if made else "from the cache"
    echo(f"{n} events, {nbytes} bytes, {speed}: {output}")


def _format_of(output: Path) -> FileFormat:
    match output.suffix:
        case ".mdf":
            return "mdf"
        case ".mep":
            return "mep"
    raise ValueError(f"{output}: expected a name that ends in .mdf or .mep")


def _write(sample: SimulatedSample, n: int, jobs: int, output: Path) -> None:
    """Write the events to a file."""
    with (
        closing(sample.blocks(n, jobs)) as made,
        complete_file(output) as file,
        event_progress("simulating", n) as add,
    ):
        for block in counted(made, add):
            file.write(block)
