"""hltnode compare: compares banks, hits and truth of two samples."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    GeometryOption,
    JsonOption,
    console,
    require_packages,
    require_writable,
    user_errors,
    write_json,
    write_text,
)
from hltnode.daemon.commands.result_files import result_file
from hltnode.daemon.commands.row_options import NonzeroOption, RowOrderOption, RowsOption, row_choice
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.tool_command import tool_command
from hltnode.processing.framework.event_files import EventFileError, read_events
from hltnode.processing.offline.chain_tools import Comparison, SampleSummary
from hltnode.protocol.errors import ProtocolError


@tool_command("comparison")
def compare(
    tool: Comparison[Any],
    reference: Annotated[Path, typer.Argument(metavar="REFERENCE", help="Reference events (MDF or MEP).")],
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="Events to compare with the reference.")],
    output: Annotated[Path, result_file("-o", "--output", metavar="REPORT.html", help="Report to write.")],
    geometry: GeometryOption = None,
    lines: RowsOption = None,
    nonzero: NonzeroOption = False,
    order: RowOrderOption = None,
    json: JsonOption = None,
    chain: ChainOption = DEFAULT_CHAIN,  # noqa: ARG001 - chose the tool
) -> None:
    """Compare banks, hits and truth of two samples: distributions, means, Kolmogorov distances.

    Example: hltnode compare recorded.mdf minbias.mdf -o report.html
    """
    with user_errors():
        require_packages("an HTML report", "matplotlib")
        require_writable(output, json, reads=(reference, other))
        files, samples = (reference, other), tool.summaries(geometry)
        for file, sample in zip(files, samples, strict=True):
            _add_events(file, sample, tool)
        compared = tool.compare(files, samples, row_choice(lines, nonzero, order))
        write_text(output, compared.page)
        write_json(json, {"reference": str(reference), "other": str(other), **compared.result})
    echo(compared.text)
    echo(f"{samples[0].events} events of {reference} and {samples[1].events} of {other}: {output}")


def _add_events(path: Path, summary: SampleSummary, tool: Comparison[Any]) -> None:
    """Count the events of a file. Raises EventFileError, which names file and event."""
    columns = (SpinnerColumn(), TextColumn(f"{path.name}: {{task.completed}} events"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        for banks in read_events(path):
            try:
                summary.add_event(banks)
            except ProtocolError as error:
                raise EventFileError(f"{path}, {tool.event_name(banks)}: {error}") from error
            progress.advance(task)
