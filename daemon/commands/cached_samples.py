"""Simulated samples of the user's cache, for the commands that read event files."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hltnode.daemon.commands.common import console, thread_count
from hltnode.daemon.commands.tool_command import tool_of
from hltnode.processing.offline.sample_cache import SampleCache, user_cache

if TYPE_CHECKING:
    from hltnode.processing.offline.chain_tools import SimulatedSample

MEGABYTE = 1e6

CachedOption = Annotated[
    str | None,
    typer.Option(
        "--cached",
        metavar="NAME",
        help="Simulated sample of the user's cache instead of INPUT, made if it is missing. Chain lhcb has minbias, "
        "minbias-enriched, and the signals bjpsik, bsmumu, bsphiphi, d2kpi, jpsi, ks2pipi, l2ppi, tau3mu, z.",
    ),
]


def shown(blocks: Iterable[tuple[int, bytes]], n: int, what: str) -> Iterator[bytes]:
    """The bytes of blocks of simulated events, with their progress on the terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(what, total=n)
        for size, block in blocks:
            yield block
            progress.advance(bar, size)


def cached_file(sample: "SimulatedSample", n: int, jobs: int) -> tuple[Path, bool]:
    """The file of a sample in the cache, and whether it had to be made. Raises ValueError as the sample does."""
    cache = SampleCache(user_cache())
    path = cache.path(sample.name, {"events": n, **sample.identity})
    if cache.is_complete(path):
        return path, False
    with closing(sample.blocks(n, jobs)) as made:
        cache.write(path, shown(made, n, f"simulating {sample.name}"))
    return path, True


def files_or_cached(files: list[Path] | None, cached: str | None, chain: str, geometry: Path | None) -> list[Path]:
    """The files of a command, or the named sample of the chain. Raises ValueError: neither, both, or no such name."""
    if cached is None:
        if not files:
            raise ValueError("expected INPUT, an event file, or --cached NAME, a simulated sample")
        return files
    if files:
        raise ValueError("expected INPUT or --cached NAME, not both")
    # Local import: commands that read files need no tools of a chain.
    from hltnode.processing.offline.chain_tools import SampleRequest, installed_tools

    tool: Any = tool_of(installed_tools(chain), chain, "simulation")
    if cached not in tool.named_samples:
        raise ValueError(f"--cached {cached}: chain {chain} has the samples {', '.join(tool.named_samples)}")
    named = tool.named_samples[cached]
    sample = tool.sample(SampleRequest(seed=1, geometry=geometry), tool.options(**named.options))
    path, made = cached_file(sample, named.events, thread_count(0))
    about = "simulated" if made else "from the cache"
    size = f"{path.stat().st_size / MEGABYTE:.0f} MB"
    console.print(f"{cached}: {named.events} events, {size}, {about}: {path}", soft_wrap=True, highlight=False)
    return [path]
