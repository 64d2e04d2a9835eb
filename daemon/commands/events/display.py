"""hltnode display: a picture of one event of a file."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from hltnode.daemon.commands.common import (
    GeometryOption,
    SequenceOption,
    TriggerOption,
    complete_file,
    console,
    echo_folded,
    require_packages,
    require_writable,
    user_errors,
)
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import EventFileError, event_counts, read_events
from hltnode.processing.framework.readout import AUTO, check_encoding
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.display.event_reader import EventReader, run_and_event
from hltnode.processing.lhcb.offline.display.html_page import event_page
from hltnode.processing.lhcb.offline.display.scene import Scene
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.raw_bank import RawBank

_SUFFIXES = (".html", ".png")


def display(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="MDF or MEP file.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html|.png",
            help="Picture to write; its suffix, .html or .png, is the format.",
        ),
    ],
    event: Annotated[
        int | None, typer.Option("--event", min=0, help="Which event of the file, counted from 0; the first if none.")
    ] = None,
    event_number: Annotated[
        int | None, typer.Option("--event-number", min=0, help="The event with this number, as ODIN has it.")
    ] = None,
    run: Annotated[int | None, typer.Option("--run", min=0, help="With --event-number: the event of this run.")] = None,
    encoding: Annotated[
        str, typer.Option("--encoding", help="Which banks to read where events hold the same hits twice.")
    ] = AUTO,
    geometry: GeometryOption = None,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
) -> None:
    """Draw an event of FILE: hits, tracks, vertices, the lines that accept it, and its truth if it has any.

    HTML is interactive and needs no network; PNG needs the extra "plot".

    Example: hltnode display minbias.mdf --event 3 -o event.html
    """
    with user_errors():
        if output.suffix not in _SUFFIXES:
            raise ValueError(f"{output}: the suffix has to be one of {', '.join(_SUFFIXES)}")
        if event is not None and event_number is not None:
            raise ValueError("--event counts in the file, --event-number is that of ODIN: give one of them")
        if run is not None and event_number is None:
            raise ValueError("--run belongs to --event-number")
        if output.suffix == ".png":
            require_packages("a PNG", "matplotlib")
        require_writable(output, reads=(file, trigger))
        check_encoding(CHAIN.readout, encoding)
        place, banks = find_event(file, event or 0, event_number, run)
        configuration = CHAIN.load_trigger(trigger, sequence)
        reader = EventReader(
            CHAIN,
            create_backend("cpu", CHAIN.kernels, threads=1),
            CHAIN.with_sequence(configuration.sequence).load_geometry(geometry),
            configuration,
            run_lines=True,
        )
        try:
            scene = reader.read(banks, encoding)
        except ProtocolError as error:
            raise EventFileError(f"{file}, event {place} of the file: {error}") from error
        finally:
            reader.close()
        content = _drawn(scene, output.suffix, f"{file.name}, event {place} of the file", len(configuration.lines))
        with complete_file(output) as opened:
            opened.write(content)
        _warn_of_damage(file)
    echo_folded(f"{scene.title}: ", *re.findall(r"[^,;]+[,;]?\s*", scene.summary))
    typer.echo(f"accepted by {', '.join(scene.lines)}" if scene.lines else "accepted by no line")
    typer.echo(f"{output}, {len(content)} bytes")


def find_event(file: Path, place: int, event_number: int | None, run: int | None) -> tuple[int, Sequence[RawBank]]:
    """An event of a file with its place in it, by that place or by its number. Raises EventFileError."""
    events: Iterator[tuple[int, Sequence[RawBank]]] = enumerate(read_events(file))
    seen = -1
    if event_number is None:
        for found in islice(events, place, None):
            return found
        n = sum(1 for _ in read_events(file))
        raise EventFileError(f"{file}: no event {place}: it has {n}, counted from 0")
    for seen, banks in events:
        of_run, number = run_and_event(banks)
        if number == event_number and run in (None, of_run):
            return seen, banks
    of_run_text = "" if run is None else f" of run {run}"
    raise EventFileError(f"{file}: none of its {seen + 1} events has number {event_number}{of_run_text}")


def _warn_of_damage(file: Path) -> None:
    """The event may be whole in a file that is not: a copy that was cut short has fewer events than it should."""
    try:
        for _ in event_counts(file):
            pass
    except EventFileError as error:
        console.print(f"[yellow]warning:[/yellow] {escape(str(error))}", highlight=False, soft_wrap=True)


def _drawn(scene: Scene, suffix: str, source: str, n_lines: int) -> bytes:
    if suffix == ".html":
        return event_page(scene, source=source, n_lines=n_lines).encode()
    from hltnode.processing.lhcb.offline.display.figure import event_figure, png

    return png(event_figure(scene, source=source))
