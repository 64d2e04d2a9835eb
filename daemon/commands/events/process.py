"""hltnode process: runs the pipeline of the node on files, without sockets."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    DEFAULT_ENCODING,
    BackendOption,
    ChainOption,
    ConditionsOption,
    DeviceOption,
    EncodingOption,
    GeometryOption,
    JsonOption,
    SequenceOption,
    ThreadsOption,
    TriggerOption,
    console,
    echo_folded,
    end_with_damage,
    require_files,
    require_writable,
    thread_count,
    unknown_source_text,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.result_files import result_file
from hltnode.daemon.commands.row_options import LinesOption, NonzeroOption, OrderOption, row_choice
from hltnode.daemon.commands.terminal import echo
from hltnode.processing.selection.studies.row_choice import (
    Order,
    chosen_lines,
    left_out_text,
    rates_of_line,
    with_note,
)

EVENT_ROWS = "event"
"""EVENT_ROWS of `analysis.tuple_files`, whose import costs that of the whole selection."""


def process(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="MDF or MEP files.")],
    geometry: GeometryOption = None,
    conditions: ConditionsOption = None,
    backend: BackendOption = "auto",
    threads: ThreadsOption = 0,
    device: DeviceOption = 0,
    repeat_count: Annotated[int, typer.Option("--repeat", min=1, help="Number of passes over the files.")] = 1,
    encoding: EncodingOption = DEFAULT_ENCODING,
    chain: ChainOption = DEFAULT_CHAIN,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    accepted: Annotated[
        Path | None,
        result_file("--accepted", metavar="FILE", help="Write the accepted events with their reports (MDF)."),
    ] = None,
    lists: Annotated[
        list[str] | None,
        typer.Option(
            "--lists",
            metavar="LIST,...",
            help="Output lists of the chain that --accepted carries, as output.lists of a node.",
        ),
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
    Damaged events are left out and named at the end, and the exit code is then 1. Without accepted events, the file of
    --accepted is empty.

    With --json, an event of a chain with time slices is a sub-slice: its results are in ns since its start, which is
    sub_slice_start_ns, and windows_ns has start and end of its windows in ns since the start of the stream. Without
    margins, the stream begins with the first event of FILES. With damaged events these values are left out.

    Examples: hltnode process minbias.mdf --geometry conditions --repeat 100 --json out.json;
    hltnode process jpsi.mdf --tuple jpsi.parquet --fields 'event.run,dimuons.mass,dimuons.pt' --rows dimuons
    """
    # Local imports: `--help` needs neither NumPy nor the selection, and answers ten times as fast without them.
    from hltnode.analysis.tuple_files import check_suffix
    from hltnode.daemon.commands.events.event_processor import Setup
    from hltnode.daemon.commands.events.sample_processing import process_files
    from hltnode.processing.framework.event_files import DamageLog
    from hltnode.processing.selection.studies.fields import usual_names
    from hltnode.processing.selection.studies.tables import rates_text

    with user_errors():
        require_writable(json, accepted, histograms, tuple_, reads=[*files, trigger])
        require_files(*files)
        if lists and accepted is None:
            raise ValueError("expected --accepted with --lists")
        if tuple_ is None and (fields or rows != EVENT_ROWS):
            raise ValueError("expected --tuple with --fields and --rows")
        if tuple_ is not None:
            check_suffix(tuple_)
            if repeat_count > 1:
                raise ValueError("expected only one of --repeat, which measures the pipeline, and --tuple")
        if dask is not None and repeat_count > 1:
            raise ValueError("expected only one of --repeat, which measures this process, and --dask")
        if dask is not None and conditions is not None:
            raise ValueError("expected only one of --conditions and --dask")
        setup = Setup(
            chain=chain,
            trigger=trigger,
            sequence=sequence,
            geometry=geometry,
            conditions=conditions,
            backend=backend,
            # With Dask, 0 threads means one per core of the worker.
            threads=thread_count(threads) if dask is None else threads,
            device=device,
            encoding=encoding,
            with_fields=tuple_ is not None,
            fields=tuple(name for text in fields for name in text.split(",")) if fields else None,
            lists=tuple(name for text in lists or () for name in text.split(",")),
        )
        if fields is None and rows != EVENT_ROWS:
            setup = replace(setup, fields=usual_names(*setup.load(), rows))
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
        echo("\n" + with_note(rates_text(shown, alone=False), left_out_text(rates, shown)))
    if (written := result["tuple"]) is not None:
        echo(f"{written['file']}: {written['rows']} rows of {written['columns']} columns")
    if accepted is not None and not n_accepted:
        echo(f"{accepted} is empty: no event is accepted")
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
