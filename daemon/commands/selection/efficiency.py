"""hltnode efficiency: efficiencies of the lines of a trigger configuration on signal decays."""

from dataclasses import asdict
from typing import Any

from rich.markup import escape

from hltnode.daemon.commands.cached_samples import CachedOption, files_or_cached
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
    end_with_damage,
    thread_count,
    user_errors,
)
from hltnode.daemon.commands.row_options import LinesOption, NonzeroOption, OrderOption, row_choice
from hltnode.daemon.commands.selection.options import (
    CompareOption,
    FilesArgument,
    ReportOption,
    Results,
    ScanOption,
    check_files,
    configurations,
    counted_events,
    described,
    read_scans,
    write_results,
)
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.tool_command import tool_command
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import DamageLog, read_all_tables
from hltnode.processing.offline.chain_tools import Efficiency
from hltnode.processing.selection.studies.decided_events import DecidingPass
from hltnode.processing.selection.studies.row_choice import (
    Order,
    chosen_lines,
    efficiencies_of_line,
    left_out_text,
    with_note,
)
from hltnode.processing.selection.studies.scans import lines_of
from hltnode.processing.selection.trigger_chain import installed_chain


@tool_command("efficiency")
def efficiency(
    tool: Efficiency[Any],
    own: Any,
    files: FilesArgument = None,
    cached: CachedOption = None,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    scan: ScanOption = None,
    lines: LinesOption = None,
    nonzero: NonzeroOption = False,
    order: OrderOption = Order.RATE,
    compare: CompareOption = None,
    geometry: GeometryOption = None,
    conditions: ConditionsOption = None,
    backend: BackendOption = "auto",
    threads: ThreadsOption = 0,
    device: DeviceOption = 0,
    json: JsonOption = None,
    report: ReportOption = None,
    chain: ChainOption = DEFAULT_CHAIN,
) -> None:
    """Compute efficiencies of lines on simulated signal decays, for reconstructible decays and for all events.

    A second efficiency counts only events that the signal alone would have triggered.

    Example: hltnode efficiency bsphiphi.mdf --scan Hlt1TwoTrackMVA.min_response=0.9:0.99:10 --report efficiency.html
    """
    with user_errors():
        check_files(files or (), json, report, trigger, compare)
        results: Results = []
        known = installed_chain(chain)
        studied = configurations(known, trigger, compare, sequence)
        choice = row_choice(lines, nonzero, order)
        choice.check([name for _, configuration in studied for name in configuration.line_names])
        scans_of = [read_scans(scan, configuration) for _, configuration in studied]
        files = files_or_cached(files, cached, chain, geometry)
        for (name, configuration), scans in zip(studied, scans_of, strict=True):
            chosen = known.with_sequence(configuration.sequence)
            deciding = DecidingPass(
                known,
                configuration,
                create_backend(backend, known.kernels, threads=thread_count(threads), device=device),
                chosen.load_geometry(geometry),
                lines=(*configuration.lines, *lines_of(scans)),
                retain=tool.retained(chosen.sequence),
                encoding=tool.encoding(own),
                conditions=conditions,
            )
            damage = DamageLog()
            with counted_events(files, name) as progress:
                measured = tool.measure(deciding, read_all_tables(files, damage), configuration.lines, scans, progress)
            deciding.engine.close()
            head = described(files, name, known, configuration, deciding)
            results.append((name, head | measured.result | {"damage": asdict(damage)}))
        shown = chosen_lines(choice, results, efficiencies_of_line)
        text = with_note(tool.text(shown), left_out_text(results, shown))
        write_results(results, json, report, lambda: tool.page(shown, text))
    echo(text)
    if measured.remark:
        console.print(f"[yellow]{escape(measured.remark)}[/yellow]", soft_wrap=True)
    end_with_damage(damage)
