"""hltnode display: a picture of one event of a file."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    ConditionsOption,
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
from hltnode.daemon.commands.result_files import result_file
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.tool_command import tool_command
from hltnode.processing.framework.event_files import EventFileError, event_counts, read_events
from hltnode.processing.framework.readout import AUTO, check_encoding
from hltnode.processing.offline.chain_tools import Display
from hltnode.processing.selection.run_conditions import with_conditions_of
from hltnode.processing.selection.trigger_chain import installed_chain
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.raw_bank import RawBank

_SUFFIXES = (".html", ".png")


@tool_command("display")
def display(
    tool: Display[Any],
    own: Any,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="MDF or MEP file.")],
    output: Annotated[
        Path,
        result_file(
            "--output",
            "-o",
            metavar="FILE.html|.png",
            help="Picture to write; the suffix .html or .png selects the format.",
        ),
    ],
    event: Annotated[
        int | None,
        typer.Option(
            "--event", min=0, help="Index of the event in the file, counted from 0; default: the first event."
        ),
    ] = None,
    event_number: Annotated[
        int | None, typer.Option("--event-number", min=0, help="Event number in ODIN, instead of --event.")
    ] = None,
    run: Annotated[
        int | None, typer.Option("--run", min=0, help="With --event-number: run number of the event.")
    ] = None,
    encoding: Annotated[
        str, typer.Option("--encoding", help="Banks to read if events hold the same hits twice.")
    ] = AUTO,
    geometry: GeometryOption = None,
    conditions: ConditionsOption = None,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    chain: ChainOption = DEFAULT_CHAIN,
) -> None:
    """Draw an event of FILE: hits, tracks, vertices, accepting lines, and truth if available.

    HTML is interactive and needs no network; PNG needs the extra "plot".

    Example: hltnode display minbias.mdf --event 3 -o event.html
    """
    with user_errors():
        if output.suffix not in _SUFFIXES:
            raise ValueError(f"{output}: expected one of {', '.join(_SUFFIXES)} as suffix")
        if event is not None and event_number is not None:
            raise ValueError("expected only one of --event (index in the file) and --event-number (number in ODIN)")
        if run is not None and event_number is None:
            raise ValueError("expected --event-number with --run")
        if output.suffix == ".png":
            require_packages("a PNG", "matplotlib")
        require_writable(output, reads=(file, trigger))
        known = installed_chain(chain)
        check_encoding(known.readout, encoding)
        place, banks = find_event(tool, file, event or 0, event_number, run)
        configuration = known.load_trigger(trigger, sequence)
        if conditions is not None:
            configuration = with_conditions_of(known, configuration, conditions, tool.run_and_event(banks)[0])
        reader = tool.reader(known, geometry, configuration, own)
        try:
            picture = reader.read(banks, encoding)
        except ProtocolError as error:
            raise EventFileError(f"{file}, event {place} of the file: {error}") from error
        finally:
            reader.close()
        source = f"{file.name}, event {place} of the file"
        if output.suffix == ".html":
            content = tool.page(picture, source, len(configuration.lines)).encode()
        else:
            content = tool.png(picture, source)
        with complete_file(output) as opened:
            opened.write(content)
        _warn_of_damage(file)
    echo_folded(f"{picture.title}: ", *re.findall(r"[^,;]+[,;]?\s*", picture.summary))
    echo(f"accepted by {', '.join(picture.lines)}" if picture.lines else "accepted by no line")
    echo(f"{output}, {len(content)} bytes")


def find_event(
    tool: Display[Any], file: Path, place: int, event_number: int | None, run: int | None
) -> tuple[int, Sequence[RawBank]]:
    """An event of a file and its index, found by index or by event number. Raises EventFileError."""
    events: Iterator[tuple[int, Sequence[RawBank]]] = enumerate(read_events(file))
    seen = -1
    if event_number is None:
        for found in islice(events, place, None):
            return found
        n = sum(1 for _ in read_events(file))
        raise EventFileError(f"{file}: no event {place}: the file has {n} events, counted from 0")
    for seen, banks in events:
        of_run, number = tool.run_and_event(banks)
        if number == event_number and run in (None, of_run):
            return seen, banks
    of_run_text = "" if run is None else f" of run {run}"
    raise EventFileError(f"{file}: none of its {seen + 1} events has number {event_number}{of_run_text}")


def _warn_of_damage(file: Path) -> None:
    """Warn about a damaged file, even if the event is intact: a truncated copy has too few events."""
    try:
        for _ in event_counts(file):
            pass
    except EventFileError as error:
        console.print(f"[yellow]warning:[/yellow] {escape(str(error))}", highlight=False, soft_wrap=True)
