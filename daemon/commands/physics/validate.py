"""hltnode validate: efficiencies of the reconstruction against Monte Carlo truth."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hltnode.daemon.commands.common import (
    BackendOption,
    DeviceOption,
    GeometryOption,
    JsonOption,
    SequenceOption,
    ThreadsOption,
    TriggerOption,
    console,
    require_files,
    require_packages,
    require_writable,
    thread_count,
    user_errors,
    write_json,
    write_text,
)
from hltnode.daemon.commands.lhcb_options import VeloBanksOption, load_velo_geometry
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import EventFileError, read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.processing.lhcb.offline.validation.checker.truth_check import TruthFault
from hltnode.processing.lhcb.offline.validation.readers.velopix import encode_velopix, read_velopix
from hltnode.processing.lhcb.offline.validation.reference.comparison import MUON_COLUMNS, ReferenceComparison
from hltnode.processing.lhcb.offline.validation.reports.long_report import reference_lines
from hltnode.processing.lhcb.offline.validation.reports.report import format_report
from hltnode.processing.lhcb.offline.validation.reports.result_file import read_result
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.raw_bank import RawBank

EVENTS_PER_MEP = 16

LIMITS = BatchLimits(events=64, input_bytes=8 << 20)
"""Small batches: whole buffers are copied back after each of them."""


class InputFormat(StrEnum):
    """Formats with truth."""

    MDF = "mdf"
    VELOPIX = "velopix"


def validate(
    input_file: Annotated[Path, typer.Argument(metavar="INPUT", help="Events with truth.")],
    input_format: Annotated[InputFormat, typer.Option("--format", help="Format of INPUT.")] = InputFormat.MDF,
    geometry: GeometryOption = None,
    backend: BackendOption = "auto",
    threads: ThreadsOption = 0,
    device: DeviceOption = 0,
    velo_banks: VeloBanksOption = "auto",
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    json: JsonOption = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE.html", help="Write numbers and plots as one HTML file.")
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference", metavar="DIR", help="Also compare with dumps of the same events, quantity by quantity."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="OTHER.json", help="Overlay this earlier result (--json) in the report."),
    ] = None,
) -> None:
    """Reconstruct INPUT and compare with its truth: efficiencies, ghosts, clones, purities, primary vertices.

    Example: hltnode validate bsphiphi.jsonl.gz --format velopix --geometry lhcb-geometry --json out.json
    """
    with user_errors():
        if report is not None:
            require_packages("an HTML report", "matplotlib")
        elif against is not None:
            raise ValueError("--against needs --report FILE.html")
        require_writable(json, report, reads=(input_file, trigger, reference))
        require_files(input_file)
        other = None if against is None else (against.name, read_result(against))
        detector = load_velo_geometry(geometry)
        configuration = CHAIN.load_trigger(trigger, sequence)
        chain = CHAIN.with_sequence(configuration.sequence)
        comparison = None if reference is None else ReferenceComparison(reference, geometry)
        engine = CHAIN.create_engine(
            create_backend(backend, CHAIN.kernels, threads=thread_count(threads), device=device),
            chain.load_geometry(geometry),
            configuration,
            LIMITS,
            retain=retained(chain.sequence, () if comparison is None else MUON_COLUMNS),
        )
        runner = OfflineRunner(engine)
        checker = Checker()
        events = read_events(input_file) if input_format is InputFormat.MDF else _velopix(input_file, detector)
        columns = (SpinnerColumn(), TextColumn("{task.completed} events"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("", total=None)
            try:
                meps = encode_meps(engine.chain, events, EVENTS_PER_MEP, velo_banks, LIMITS.input_bytes)
                for batch in runner.run(meps):
                    check_batch(checker, batch, comparison)
                    progress.update(task, completed=checker.events + checker.faults.events)
            except ProtocolError as error:
                raise EventFileError(f"{input_file}: {error}") from error
        engine.close()
        text = format_report(checker)
        if comparison is not None:
            comparison.check_used()
            text += "\n\n\n" + "\n".join(reference_lines(comparison))
        if json is not None or report is not None:
            result = checker.result() | {"histograms": checker.histograms()}
            if comparison is not None:
                result["reference"] = comparison.result()
            write_json(json, result)
        if report is not None:
            _write_report(report, [(input_file.name, result)] + ([] if other is None else [other]), text)
    typer.echo(text)
    if checker.events == 0 and checker.faults.counts.keys() - {TruthFault.MISSING}:
        console.print(f"[red]error:[/red] {input_file}: no event has truth that matches it", soft_wrap=True)
        raise typer.Exit(1)
    if not checker.has_truth:
        console.print(f"[yellow]{input_file} has no truth of particles:[/yellow] there are no efficiencies")


def _write_report(path: Path, results: list[tuple[str, dict[str, Any]]], text: str) -> None:
    # Only reports need matplotlib, an extra.
    from hltnode.processing.lhcb.offline.validation.reports.html_report import checker_page

    write_text(path, checker_page(results, text))


def _velopix(path: Path, geometry: VeloGeometry) -> Iterator[list[RawBank]]:
    for event in read_velopix(path):
        yield encode_velopix(event, geometry)
