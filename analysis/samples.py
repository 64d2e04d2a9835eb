"""Simulated events: files of one's own, and samples of the user's cache."""

from contextlib import closing
from dataclasses import fields
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from hltnode.analysis.progress import Progress, shown_progress
from hltnode.processing.framework.backends.host_processors import usable_processors
from hltnode.processing.framework.near_names import SIMILARITY_OF_SHORT_NAMES, near_names
from hltnode.processing.offline.chain_tools import (
    DEFAULT_RUN,
    FileFormat,
    SampleRequest,
    Simulation,
    installed_tools,
)
from hltnode.processing.offline.named_samples import named_sample

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
    tool = _simulation(chain)
    known = [field.name for field in fields(tool.options)]
    for name in options:
        if name not in known:
            near = near_names(name, known, similarity=SIMILARITY_OF_SHORT_NAMES) or known
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


def cached_sample(
    name: str,
    *,
    jobs: int = 0,
    geometry: PathLike[str] | str | None = None,
    chain: str = "lhcb",
    progress: Progress = False,
) -> Path:
    """The file of a named sample in the user's cache, simulated at the first call: `rates(cached_sample("minbias"))`.

    It is the sample of `hltnode rates --cached NAME`. Its events have truth and, if rare kinds are drawn more often,
    weights. The cache is $XDG_CACHE_HOME/hltnode/samples, by default ~/.cache/hltnode/samples. Another geometry or
    version of the code gives another file. `hltnode simulate --clear-cache` removes all.

    Args:
        name: sample of the chain; lhcb has "minbias", "minbias-enriched" and the signals of `simulate`.
        jobs: processes; 0: one per core. The events do not depend on it.
        geometry: folder of geometry files; the built-in detector if None.
        chain: name of an installed chain with a simulation.
        progress: True shows a progress bar while events are simulated; a function is called with the number of events
            since its last call.

    Raises ValueError for an unknown name, which lists the known ones, and for a cache that cannot be written.
    """
    folder = None if geometry is None else Path(geometry)
    return named_sample(
        _simulation(chain), name, folder, jobs or usable_processors(), partial(shown_progress, progress)
    ).path


def _simulation(chain: str) -> Simulation[Any]:
    make = installed_tools(chain).simulation
    if make is None:
        raise ValueError(f"chain {chain} has no simulation")
    return make()
