"""hltnode parametrise: computes parameters of algorithms from the description of the detector."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    GeometryOption,
    console,
    require_writable,
    user_errors,
    write_text,
)
from hltnode.daemon.commands.result_files import ForceOption, require_new
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.tool_command import tool_command
from hltnode.processing.offline.chain_tools import Parametrisation


@tool_command("parametrisation")
def parametrise(
    tool: Parametrisation[Any, Any],
    own: Any,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Folder for the file of parameters."),
    ] = None,
    geometry: GeometryOption = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check", metavar="DIR", help="Exit with code 1 if the parameters in this folder are out of date."
        ),
    ] = None,
    chain: ChainOption = DEFAULT_CHAIN,  # noqa: ARG001 - chose the tool
    force: ForceOption = False,  # noqa: ARG001 - require_new asks for it
) -> None:
    """Compute the parameters of the tracking from geometry, field and material of the detector.

    The command flies particles through the detector, prints how well the parameters agree with these flights, and
    writes them to the file that the chain reads.

    Example: hltnode parametrise --geometry conditions -o conditions
    """
    with user_errors():
        name = tool.file_name
        if output is not None:
            require_writable(output / name)
            require_new(output / name)
        expected = None if check is None else tool.load(check)
        found = tool.compute(geometry, own)
        echo(found.accuracy)
        if output is not None:
            write_text(output / name, found.as_json())
            echo(f"{output / name} written")
        if expected is not None and (differences := expected.differences(found)):
            console.print(f"{check}/{name} is out of date: {', '.join(differences)}", soft_wrap=True)
            raise typer.Exit(1)
