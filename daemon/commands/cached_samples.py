"""Simulated samples of the user's cache, for the commands that read event files."""

from pathlib import Path
from typing import Annotated

import typer

from hltnode.daemon.commands.common import console, thread_count
from hltnode.daemon.commands.progress import event_progress
from hltnode.daemon.commands.tool_command import tool_of

MEGABYTE = 1e6

CachedOption = Annotated[
    str | None,
    typer.Option(
        "--cached",
        metavar="NAME",
        help="Simulated sample of the user's cache instead of INPUT, made if it is missing. Chain lhcb has those of "
        "hltnode simulate --sample, and minbias-enriched.",
    ),
]


def files_or_cached(files: list[Path] | None, cached: str | None, chain: str, geometry: Path | None) -> list[Path]:
    """The files of a command, or the named sample of the chain. Raises ValueError: neither, both, or no such name."""
    if cached is None:
        if not files:
            raise ValueError("expected INPUT, an event file, or --cached NAME, a simulated sample")
        return files
    if files:
        raise ValueError("expected INPUT or --cached NAME, not both")
    # Local imports: commands that read files need no tools of a chain.
    from hltnode.processing.offline.chain_tools import installed_tools
    from hltnode.processing.offline.named_samples import named_sample

    tool = tool_of(installed_tools(chain), chain, "simulation")
    try:
        found = named_sample(tool, cached, geometry, thread_count(0), event_progress)
    except ValueError as error:
        raise ValueError(f"--cached {cached}, chain {chain}: {error}") from error
    about = "simulated" if found.made else "from the cache"
    size = f"{found.path.stat().st_size / MEGABYTE:.0f} MB"
    console.print(f"{cached}: {found.events} events, {size}, {about}: {found.path}", soft_wrap=True, highlight=False)
    return [found.path]
