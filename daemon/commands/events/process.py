"""hltnode process: runs the pipeline of the node on files, without sockets."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hltnode.analysis.tuple_files import EVENT_ROWS, TupleFile, check_suffix, tuple_file
from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    BackendOption,
    ChainOption,
    DeviceOption,
    GeometryOption,
    JsonOption,
    SequenceOption,
    ThreadsOption,
    TriggerOption,
    complete_file,
    console,
    echo_folded,
    end_with_damage,
    require_files,
    require_writable,
    thread_count,
    unknown_source_text,
    user_errors,
    write_json,
    write_text,
)
from hltnode.daemon.commands.events.dask_workers import dask_client, processed_ranges
from hltnode.daemon.commands.events.event_processor import EventProcessor, Setup
from hltnode.daemon.commands.events.sample_results import SampleResult
from hltnode.daemon.commands.result_files import require_new, result_file
from hltnode.daemon.commands.row_options import LinesOption, NonzeroOption, OrderOption, row_choice
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.storage.root_file import root_bytes
from hltnode.processing.framework.event_files import DamageLog, read_all_events
from hltnode.processing.framework.foreign_files import require_sources
from hltnode.processing.framework.histograms import contents
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.studies.fields import FieldReader
from hltnode.processing.selection.studies.row_choice import (
    Order,
    chosen_lines,
    left_out_text,
    rates_of_line,
    with_note,
)
from hltnode.processing.selection.studies.tables import rates_text
from hltnode.processing.selection.trigger_chain import TriggerChain


def process(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="MDF or MEP files.")],
    geometry: GeometryOption = None,
    backend: BackendOption = "auto",
    threads: ThreadsOption = 0,
    device: DeviceOption = 0,
    repeat_count: Annotated[int, typer.Option("--repeat", min=1, help="Number of passes over the files.")] = 1,
    encoding: Annotated[
        str, typer.Option("--encoding", help="Banks to read if events hold the same hits twice.")
    ] = AUTO,
    chain: ChainOption = DEFAULT_CHAIN,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    accepted: Annotated[
        Path | None,
        result_file("--accepted", metavar="FILE", help="Write the accepted events with their reports (MDF)."),
    ] = None,
    histograms: Annotated[
        Path | None,
        result_file("--histograms", metavar="FILE", help="Write the monitoring histograms (ROOT)."),
    ] = None,
    tuple_: Annotated[
        Path | None,
        result_file(
            "--tuple", metavar="FILE.parquet|.root", help="Write fields of the events; see --fields and --rows."
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--fields",
            metavar="INPUT.FIELD,...",
            help="Fields of --tuple, as `hltnode lines --fields` lists them; * and ? stand for any characters.",
        ),
    ] = None,
    rows: Annotated[
        str,
        typer.Option("--rows", metavar="event|INPUT", help="Rows of --tuple: events, or the candidates of an input."),
    ] = EVENT_ROWS,
    lines: LinesOption = None,
    nonzero: NonzeroOption = False,
    order: OrderOption = Order.RATE,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="SCHEDULER",
            help="Process on the workers of this Dask scheduler (tcp://HOST:PORT), or in N processes (local:N).",
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Reconstruct and select the events of FILES.

    The output ends with the rate of each line, if every event is one bunch crossing (`hltnode rates` shows more).
    Damaged events are left out and named at the end, and the exit code is then 1.

    Examples: hltnode process minbias.mdf --geometry conditions --repeat 100 --json out.json;
    hltnode process jpsi.mdf --tuple jpsi.parquet --fields 'event.run,dimuons.mass,dimuons.pt' --rows dimuons
    """
    with user_errors():
        require_writable(json, accepted, histograms, tuple_, reads=[*files, trigger])
        require_files(*files)
        if tuple_ is None and (fields or rows != EVENT_ROWS):
            raise ValueError("expected --tuple with --fields and --rows")
        if tuple_ is not None:
            check_suffix(tuple_)
            if repeat_count > 1:
                raise ValueError("expected only one of --repeat, which measures the pipeline, and --tuple")
        if dask is not None and repeat_count > 1:
            raise ValueError("expected only one of --repeat, which measures this process, and --dask")
        setup = Setup(
            chain=chain,
            trigger=trigger,
            sequence=sequence,
            geometry=geometry,
            backend=backend,
            # With Dask, 0 threads means one per core of the worker.
            threads=thread_count(threads) if dask is None else threads,
            device=device,
            encoding=encoding,
            with_fields=tuple_ is not None,
            fields=tuple(name for text in fields for name in text.split(",")) if fields else None,
        )
        choice = row_choice(lines, nonzero, order)
        if choice.patterns:
            choice.check(setup.load()[1].line_names)
        result = process_files(
            files,
            setup,
            repeat_count=repeat_count,
            dask=dask,
            accepted=accepted,
            histograms=histograms,
            to_tuple=tuple_,
            rows=rows,
        )
        write_json(json, result)
    ran = result["trigger"]
    echo_folded(
        f"{ran['lines']} lines, {ran['of_built_in_menu']} of them of the built-in menu; ",
        f"sequence {ran['sequence']}, TCK {ran['tck']}",
    )
    n_accepted = sum(event["accepted"] for event in result["per_event"])
    echo(
        f"{result['events']} events in {result['seconds']:.3f} s: {result['events_per_second']:.0f} events/s on "
        f"{result['backend']}, {result['threads']} threads{_of_workers(dask, result)}; "
        f"{n_accepted} of {len(result['per_event'])} accepted"
    )
    flags = Counter(flag for event in result["per_event"] for flag in event["flags"])
    if flags:
        echo("flagged: " + ", ".join(f"{n} {flag.lower()}" for flag, n in flags.most_common()))
    objects = [f"{n} {name}, " for name, n in result["objects"].items()]
    echo_folded("found in them: ", *objects[:-1], *(last.removesuffix(", ") for last in objects[-1:]))
    if result["rates"] is not None:
        about = {"sequence": ran["sequence"], "tck": ran["tck"]}
        rates = [("lines", about | result["rates"])]
        shown = chosen_lines(choice, rates, rates_of_line)
        echo("\n" + with_note(rates_text(shown), left_out_text(rates, shown)))
    if (written := result["tuple"]) is not None:
        echo(f"{written['file']}: {written['rows']} rows of {written['columns']} columns")
    if unknown := result["unknown_types"]:
        console.print(unknown_source_text("not read", unknown), markup=False, highlight=False, soft_wrap=True)
    if left_out := result["banks_left_out"]:
        echo_folded(
            f"{left_out} banks of accepted events are not in {accepted}: a bank of a file has at most 65,527 bytes, ",
            "and not the type 48",
        )
    if left_out := result["reports_left_out"]:
        echo_folded(
            f"{left_out} trigger banks of accepted events are not in {accepted}: ",
            "they are of other sources, and the reports of this selection replace all trigger banks",
        )
    if left_out := result["candidates_left_out"]:
        echo_folded(f"{left_out} selected candidates did not fit in the reports of their events in {accepted}")
    end_with_damage(DamageLog(**result["damage"]))


def _of_workers(dask: str | None, result: dict[str, Any]) -> str:
    return "" if dask is None else f" of each of {result['workers']} workers"


def process_files(
    files: Sequence[Path],
    setup: Setup,
    *,
    repeat_count: int = 1,
    dask: str | None = None,
    accepted: Path | None = None,
    histograms: Path | None = None,
    to_tuple: Path | None = None,
    rows: str = EVENT_ROWS,
) -> dict[str, Any]:
    """The JSON object of `hltnode process`. The document of the trigger configuration is written beside `accepted`.

    dask: scheduler whose workers process the events; None: this process. `seconds` is the time of the pipeline
    (EventProcessor.process); with Dask, the time from the first range to the last result.

    Raises ValueError for the setup, and EventFileError, also for a file without any source that the chain reads.
    """
    chain, configuration = setup.load()
    document = chain.document(configuration)
    shapes = [histogram.shape for histogram in chain.filled_histograms(configuration)]
    beside = None if accepted is None else accepted.with_name(document.file_name)
    if beside is not None and not _holds(beside, document.text):
        require_new(beside)
    columns = (SpinnerColumn(), TextColumn("{task.completed} events"), TimeElapsedColumn())
    with (
        Progress(*columns, console=console, transient=True) as progress,
        nullcontext() if accepted is None else complete_file(accepted) as file,
        nullcontext() if to_tuple is None else _tuple_file(to_tuple, chain, configuration, setup, rows) as tuple_rows,
    ):
        task = progress.add_task("", total=None)
        damage = DamageLog()
        result = SampleResult(document.collections, document.line_names, shapes, file, tuple_rows)
        if dask is None:
            _process_here(files, setup, repeat_count, result, damage, lambda n: progress.advance(task, n))
        else:
            for path in files:
                require_sources(path, chain.with_sequence(configuration.sequence))
            with dask_client(dask) as client:
                begin = time.perf_counter()
                for part in processed_ranges(client, files, setup, damage, accepted=accepted is not None):
                    result.add(part)
                    progress.update(task, completed=result.events)
                result.seconds = time.perf_counter() - begin
    if histograms is not None:
        _write_histograms(histograms, result, document.name)
    if beside is not None:
        write_text(beside, document.text)
    return {
        "trigger": {
            "tck": document.name,
            "sequence": document.sequence,
            "lines": len(configuration.line_names),
            "of_built_in_menu": configuration.from_menu,
        },
        "events": result.events,
        "seconds": result.seconds,
        "events_per_second": result.events / result.seconds if result.seconds else 0.0,
        "backend": result.backend,
        "threads": result.threads,
        "workers": len(result.workers),
        "objects": result.objects,
        "rates": result.rates.result() if result.rates.events else None,
        "per_event": result.per_event,
        "tuple": None if to_tuple is None else _tuple_result(result),
        "damage": asdict(damage),
        "unknown_types": sorted(result.unknown_types),
        "banks_left_out": result.banks_left_out,
        "reports_left_out": result.reports_left_out,
        "candidates_left_out": result.candidates_left_out,
    }


def _holds(path: Path, text: str) -> bool:
    """Whether a file has this content: files of accepted events in one folder may share the document beside them."""
    return path.is_file() and path.read_bytes() == text.encode()


def _tuple_file(path: Path, chain: TriggerChain, configuration: TriggerConfig, setup: Setup, rows: str) -> TupleFile:
    return tuple_file(path, FieldReader(chain, configuration, setup.fields), rows)


def _tuple_result(result: SampleResult) -> dict[str, Any]:
    """seconds: time for reading and writing the fields; seconds_ratio: time of the pipeline with them to that without,
    as if no other thread had computed meanwhile."""
    written = result.tuple
    assert written is not None
    without = result.seconds - result.fields_seconds
    seconds = result.fields_seconds + result.tuple_seconds
    return {
        "file": str(written.path),
        "rows": written.n_rows,
        "columns": written.n_columns,
        "seconds": seconds,
        "seconds_ratio": (without + seconds) / without if without else None,
    }


def _process_here(
    files: Sequence[Path],
    setup: Setup,
    times: int,
    result: SampleResult,
    damage: DamageLog,
    processed: Callable[[int], None],
) -> None:
    """Add the results of all events that can be read, and the faults of the others to `damage`."""
    # Report errors of the setup before errors of the files.
    processor = EventProcessor(setup)
    try:
        for path in files:
            require_sources(path, processor.engine.chain)
        result.backend, result.threads = processor.engine.backend.name, processor.engine.backend.threads
        accepted = result.accepted is not None
        events = read_all_events(files, damage)
        for part in processor.process(events, times=times, accepted=accepted, processed=processed):
            result.add(part)
    finally:
        processor.close()


def _write_histograms(path: Path, result: SampleResult, tck: str) -> None:
    """Each event counts once, independent of repetitions."""
    held = list(contents(result.histograms, result.histogram_counts))
    with complete_file(path) as file:
        file.write(root_bytes(held, {"tck": tck}))
