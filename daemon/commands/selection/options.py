"""Code shared by the commands on rates and efficiencies of lines."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from hltnode.daemon.commands.common import (
    require_files,
    require_packages,
    require_writable,
    write_json,
    write_text,
)
from hltnode.daemon.commands.completion import complete_cuts
from hltnode.daemon.commands.progress import count_events, event_progress
from hltnode.daemon.commands.result_files import result_file
from hltnode.processing.framework.event_files import EventFileError
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.studies.decided_events import DecidingPass
from hltnode.processing.selection.studies.scans import Scan
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.errors import ProtocolError

Results = list[tuple[str, dict[str, Any]]]
"""The JSON object of each configuration, with the name of the configuration."""

FilesArgument = Annotated[
    list[Path] | None, typer.Argument(metavar="INPUT", help="Event files; several files form one sample.")
]
ScanOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scan",
        metavar="LINE.CUT=FIRST:LAST:N",
        help="Repeat the study with N values of a cut, in the same pass; or LINE.CUT=VALUE,VALUE,... Repeatable.",
        autocompletion=complete_cuts,
    ),
]
CompareOption = Annotated[
    Path | None,
    typer.Option("--compare", metavar="OTHER.toml", help="Second trigger configuration to study."),
]
ReportOption = Annotated[
    Path | None, result_file("--report", metavar="FILE.html", help="Write numbers and plots as one HTML file.")
]


def configurations(
    chain: TriggerChain, trigger: Path | None, compare: Path | None, sequence: str | None
) -> list[tuple[str, TriggerConfig]]:
    """The one or two configurations to study, and their names. Raises TriggerConfigError."""
    paths = [trigger] if compare is None else [trigger, compare]
    return [("built-in" if path is None else path.name, chain.load_trigger(path, sequence)) for path in paths]


def described(
    files: list[Path], name: str, chain: TriggerChain, trigger: TriggerConfig, deciding: DecidingPass
) -> dict[str, Any]:
    """The common first part of both JSON objects."""
    documents = deciding.conditions.documents
    return {
        "input": [str(file) for file in files],
        "trigger": name,
        "sequence": trigger.sequence or chain.default_sequence,
        "tck": f"0x{deciding.engine.tck:08X}",
        **({"tck_of_run": {str(run): of.name for run, of in documents.items()}} if documents else {}),
    }


def read_scans(texts: list[str] | None, trigger: TriggerConfig) -> list[Scan]:
    """The scans of a configuration. Raises ScanError, TriggerConfigError."""
    return [Scan.read(text, trigger) for text in texts or ()]


def write_results(results: Results, json: Path | None, report: Path | None, page: Callable[[], str]) -> None:
    """Write the JSON object, with that of a second configuration inside, and the page if requested."""
    (_, first), *others = results
    for _, second in others:
        first = first | {"compare": second}
    write_json(json, first)
    if report is not None:
        write_text(report, page())


def check_files(files: Sequence[Path], json: Path | None, report: Path | None, *triggers: Path | None) -> None:
    """Fail before the work starts.

    Raises ValueError, also for a repeated event file, which would make errors too small.
    """
    for i, file in enumerate(files):
        if any(file == other or (file.exists() and other.exists() and file.samefile(other)) for other in files[:i]):
            raise ValueError(f"{file}: given twice")
    if report is not None:
        require_packages("an HTML report", "matplotlib")
    require_writable(json, report, reads=(*files, *triggers))
    require_files(*files)


@contextmanager
def counted_events(files: list[Path], what: str) -> Iterator[Callable[[int], None]]:
    """Show the number of processed events; yields the function that adds to it.

    Raises EventFileError, which names the files, for unreadable banks.
    """
    with event_progress(what, count_events(files)) as processed:
        try:
            yield processed
        except ProtocolError as error:
            raise EventFileError(f"{' '.join(map(str, files))}: {error}") from error
