"""hltnode validate: efficiencies of the reconstruction against Monte Carlo truth."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    BackendOption,
    ChainOption,
    ConditionsOption,
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
from hltnode.daemon.commands.progress import count_events, event_progress
from hltnode.daemon.commands.result_files import result_file
from hltnode.daemon.commands.row_options import NonzeroOption, RowOrderOption, RowsOption, row_choice
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.tool_command import tool_command
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import EventFileError
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps, encode_slices
from hltnode.processing.offline.chain_tools import Validation
from hltnode.processing.selection.run_conditions import RunConditions
from hltnode.processing.selection.trigger_chain import installed_chain
from hltnode.protocol.errors import ProtocolError

EVENTS_PER_MEP = 16

LIMITS = BatchLimits(events=64, input_bytes=8 << 20)
"""Small batches, because whole buffers are copied back after each batch."""


@tool_command("validation")
def validate(
    tool: Validation[Any],
    own: Any,
    input_file: Annotated[Path, typer.Argument(metavar="INPUT", help="Events with truth.")],
    geometry: GeometryOption = None,
    conditions: ConditionsOption = None,
    backend: BackendOption = "auto",
    threads: ThreadsOption = 0,
    device: DeviceOption = 0,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    lines: RowsOption = None,
    nonzero: NonzeroOption = False,
    order: RowOrderOption = None,
    json: JsonOption = None,
    report: Annotated[
        Path | None, result_file("--report", metavar="FILE.html", help="Write numbers and plots as one HTML file.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="OTHER.json", help="Earlier result (--json) to overlay in the report."),
    ] = None,
    chain: ChainOption = DEFAULT_CHAIN,
) -> None:
    """Reconstruct INPUT and compare the result with truth: efficiencies, ghosts, clones, purities, primary vertices.

    Example: hltnode validate minbias.mdf --geometry conditions --json out.json --report out.html
    """
    with user_errors():
        if report is not None:
            require_packages("an HTML report", "matplotlib")
        elif against is not None:
            raise ValueError("expected --report FILE.html with --against")
        require_writable(json, report, reads=(input_file, trigger, *tool.reads(own)))
        require_files(input_file)
        other = None if against is None else (against.name, tool.read_result(against))
        known = installed_chain(chain)
        configuration = known.load_trigger(trigger, sequence)
        chosen = known.with_sequence(configuration.sequence)
        check = tool.check(configuration.configure(chosen.sequence), geometry, own)
        constants = chosen.load_geometry(geometry)
        of_runs = RunConditions.load(known, constants, configuration, conditions)
        engine = known.create_engine(
            create_backend(backend, known.kernels, threads=thread_count(threads), device=device),
            constants,
            configuration,
            known.limits_for_files(LIMITS, configuration),
            retain=check.retained,
            with_lists=False,
        )
        runner = OfflineRunner(engine)
        with event_progress("validating", count_events([input_file])) as processed:
            try:
                for of_run in of_runs.in_runs(engine, check.events(input_file)):
                    if engine.chain.streaming is None:
                        meps = encode_meps(engine.chain, of_run, EVENTS_PER_MEP, check.encoding, LIMITS.input_bytes)
                    else:
                        core = engine.chain.streaming.core(EVENTS_PER_MEP)
                        meps = encode_slices(engine.chain, of_run, core, check.encoding)
                    for batch in runner.run(meps):
                        seen = check.events_seen
                        check.add(batch)
                        processed(check.events_seen - seen)
            except ProtocolError as error:
                raise EventFileError(f"{input_file}: {error}") from error
        engine.close()
        checked = check.finish(row_choice(lines, nonzero, order))
        if json is not None or report is not None:
            result = checked.result()
            write_json(json, result)
        if report is not None:
            results = [(input_file.name, result)] + ([] if other is None else [other])
            write_text(report, tool.page(results, checked.text))
    echo(checked.text)
    if checked.error:
        console.print(f"[red]error:[/red] {escape(f'{input_file}: {checked.error}')}", soft_wrap=True)
        raise typer.Exit(1)
    if checked.remark:
        console.print(f"[yellow]{escape(f'{input_file}: {checked.remark}')}[/yellow]", soft_wrap=True)
