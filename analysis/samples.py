"""Simulated events."""

from contextlib import closing
from dataclasses import fields
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from hltnode.processing.framework.backends.host_processors import usable_processors
from hltnode.processing.offline.chain_tools import DEFAULT_RUN, FileFormat, SampleRequest, installed_tools

_FORMATS: dict[str, FileFormat] = {".mdf": "mdf", ".mep": "mep"}


def simulate(
    output: PathLike[str] | str,
    events: int,
    *,
    seed: int = 1,
    run: int = DEFAULT_RUN,
    jobs: int = 0,
    geometry: PathLike[str] | str | None = None,
    chain: str = "lhcb",
    overwrite: bool = False,
    **options: Any,
) -> Path:
    """Simulate events with truth, and write them to an MDF or MEP file; returns its path.

    Args:
        output: the suffix .mdf or .mep selects the format.
        events: number of events.
        seed: the same seed gives the same events.
        run: run number.
        jobs: processes; 0: one per core. The events do not depend on it.
        geometry: folder of geometry files; the built-in detector if None.
        chain: name of an installed chain with a simulation.
        overwrite: whether an existing file may be replaced.
        options: options that the chain adds to `hltnode simulate`, with `_` for `-`: sample="bsphiphi".

    Raises FileExistsError; ValueError for an unknown option or a sample that cannot be simulated.
    """
    path = Path(output)
    if path.suffix not in _FORMATS:
        raise ValueError(f"{path}: expected a name that ends in .mdf or .mep")
    if path.exists() and not overwrite:
        raise FileExistsError(17, "the file exists; overwrite=True replaces it", str(path))
    if events < 1:
        raise ValueError(f"events {events}: expected at least 1")
    make = installed_tools(chain).simulation
    if make is None:
        raise ValueError(f"chain {chain} has no simulation")
    tool = make()
    known = [field.name for field in fields(tool.options)]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=3, cutoff=0.4) or known
            raise ValueError(f"option {name!r}: the simulation of chain {chain} has none; there are {', '.join(near)}")
    request = SampleRequest(
        seed=seed, run=run, geometry=None if geometry is None else Path(geometry), file_format=_FORMATS[path.suffix]
    )
    sample = tool.sample(request, tool.options(**options))
    unfinished = path.with_name(path.name + ".part")
    try:
        with closing(sample.blocks(events, jobs or usable_processors())) as made, unfinished.open("wb") as file:
            for _, block in made:
                file.write(block)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path
