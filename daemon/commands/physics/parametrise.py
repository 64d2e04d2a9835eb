"""hltnode parametrise: what the long tracking knows of magnet and material."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hltnode.daemon.commands.common import GeometryOption, console, require_writable, user_errors, write_text
from hltnode.processing.lhcb.geometry.field_map_file import read_field_map
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation.accuracy import accuracy_text
from hltnode.processing.lhcb.parametrisation.parameters import PARAMETERS_FILE, LongTrackParameters
from hltnode.processing.lhcb.parametrisation.parametrise import parametrise as compute


def parametrise(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help=f"Folder to write {PARAMETERS_FILE} to."),
    ] = None,
    geometry: GeometryOption = None,
    field: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Map of the field: lines of x y z Bx By Bz, mm and T; the built-in field if not given."
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help=f"Exit with 1 if the {PARAMETERS_FILE} of this folder is not what is computed now."
        ),
    ] = None,
) -> None:
    """Compute the parametrisation of the magnet for the long tracking by flying particles through its field.

    It takes geometry, field and material of the detector, prints how well the polynomials agree with flights, and
    writes them to the file that the tracking reads. The polarity is that of the geometry, else that of the map.

    Example: hltnode parametrise --geometry conditions --field field_map.txt -o conditions
    """
    with user_errors():
        if output is not None:
            require_writable(output / PARAMETERS_FILE)
        if geometry is None:
            scifi, magnet = SciFiGeometry.builtin(), Magnet.builtin()
        else:
            scifi, magnet = SciFiGeometry.load(geometry), Magnet.load(geometry)
        if field is not None:
            mapped = read_field_map(field)
            magnet = mapped if geometry is None else replace(mapped, polarity=magnet.polarity)
        expected = None if check is None else LongTrackParameters.load(check)
        found = compute(scifi, magnet)
        typer.echo(accuracy_text(found.accuracy))
        if output is not None:
            write_text(output / PARAMETERS_FILE, found.as_json())
            typer.echo(f"{output / PARAMETERS_FILE} written")
        if expected is not None and (differences := expected.differences(found)):
            console.print(f"{check}/{PARAMETERS_FILE} is out of date: {', '.join(differences)}", soft_wrap=True)
            raise typer.Exit(1)
