"""hltnode conditions: show and check a folder with the conditions of each run."""

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    GeometryOption,
    JsonOption,
    SequenceOption,
    TriggerOption,
    counted,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.selection.channels_in_data import as_table, compare_with_data, missing_channels
from hltnode.daemon.commands.terminal import echo
from hltnode.processing.selection.configuration.conditions import Values
from hltnode.processing.selection.configuration.conditions_folder import (
    MAX_RUN,
    ConditionsFolder,
    faults_of_values,
)
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Show and check a folder with the conditions of each run.",
    no_args_is_help=True,
)

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder with conditions.toml.")]
SHOWN_CHANNELS = 8
SHOWN_GROUPS = 20


@app.command()
def show(
    folder: FolderArgument,
    run: Annotated[int | None, typer.Option("--run", min=0, help="Show the values of this run.")] = None,
    chain: ChainOption = DEFAULT_CHAIN,
    json: JsonOption = None,
) -> None:
    """Print the intervals of runs, or all conditions of a run.

    A run without conditions is an error.

    Example: hltnode conditions show /etc/hltnode/conditions --run 1234
    """
    with user_errors():
        require_writable(json)
        known = installed_chain(chain)
        found = _load(known, folder)
        chosen = found.intervals if run is None else (found.interval_of(run),)
        write_json(
            json,
            {
                "version": found.version,
                "digest": found.digest,
                "intervals": [
                    {
                        "first": interval.first,
                        "last": None if interval.last == MAX_RUN else interval.last,
                        "files": list(interval.files),
                        "conditions": dict(interval.values),
                    }
                    for interval in chosen
                ],
            },
        )
    echo(f"version {found.version}, digest {found.digest[:16]}")
    for interval in chosen:
        echo(f"{interval.name}: {', '.join(interval.files)}")
        if run is not None:
            for line in _lines(known, interval.values):
                echo(f"  {line}")


@app.command()
def check(
    folder: FolderArgument,
    chain: ChainOption = DEFAULT_CHAIN,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    data: Annotated[
        list[Path] | None,
        typer.Option("--data", metavar="FILE", help="Compare the hits of these events with the masked channels."),
    ] = None,
    geometry: GeometryOption = None,
    json: JsonOption = None,
) -> None:
    """Check every value of a folder, and whether a trigger configuration can run with it. Exit code 2 for an error.

    With --data, groups of channels are listed whose hits contradict the masks: without hits, with far more hits than
    their neighbours, or masked and good. The events must belong to one interval of runs. Exit code 1 if there are any.

    Examples: hltnode conditions check /etc/hltnode/conditions --trigger trigger.toml;
    hltnode conditions check conditions --data run1234.mdf --sequence hlt1_2026
    """
    with user_errors():
        require_writable(json)
        known = installed_chain(chain)
        if faults := faults_of_values(folder, known.conditions):
            raise ValueError("\n".join(faults))
        found = _load(known, folder)
        configuration = known.load_trigger(trigger, sequence)
        if configuration.conditions:
            name = configuration.conditions[0][0]
            raise ValueError(f"{trigger}: conditions.{name}: a folder sets all conditions; remove them from this file")
        if faults := missing_channels(known, found, configuration, geometry):
            raise ValueError("\n".join(faults))
    echo(f"version {found.version}, digest {found.digest[:16]}: {len(found.intervals)} intervals of runs are valid")
    for before, after in pairwise(found.intervals):
        if after.first > before.last + 1:
            echo(f"runs {before.last + 1} to {after.first - 1} have no conditions")
    if found.unused:
        echo(f"no interval uses {', '.join(found.unused)}")
    if data is None:
        return
    with user_errors():
        n_events, differ = compare_with_data(known, found, configuration, data, geometry)
        write_json(json, {"events": n_events, "contradictions": [asdict(each) for each in differ]})
    echo(f"{counted(n_events, 'event')}: hits contradict the masks of {counted(len(differ), 'group')} of channels")
    for line in as_table(differ, SHOWN_GROUPS):
        echo(f"  {line}")
    if differ:
        raise typer.Exit(1)


def _load(chain: TriggerChain, folder: Path) -> ConditionsFolder:
    return ConditionsFolder.load(folder, chain.name, chain.conditions)


def _lines(chain: TriggerChain, values: Values) -> list[str]:
    """The values as text, with their units."""
    units = {condition.name: condition.unit for condition in chain.conditions}
    lines = []
    for name, value in values:
        if isinstance(value, tuple):
            more = ", ..." if len(value) > SHOWN_CHANNELS else ""
            text = f"{len(value)} channels: {', '.join(map(str, value[:SHOWN_CHANNELS]))}{more}"
        else:
            text = f"{value:g} {units[name]}".rstrip()
        lines.append(f"{name} = {text}")
    return lines
