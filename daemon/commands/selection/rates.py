"""hltnode rates: rates of the lines of a trigger configuration."""

import math
from dataclasses import asdict, replace
from typing import Annotated

import typer

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
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import DamageLog, read_all_sub_slices, read_all_tables
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.selection.studies.decided_events import DecidingPass
from hltnode.processing.selection.studies.rates import RateCounts
from hltnode.processing.selection.studies.row_choice import (
    Order,
    chosen_lines,
    left_out_text,
    rates_of_line,
    with_note,
)
from hltnode.processing.selection.studies.scans import lines_of
from hltnode.processing.selection.studies.tables import rates_text
from hltnode.processing.selection.trigger_chain import installed_chain


def rates(
    files: FilesArgument = None,
    cached: CachedOption = None,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    scan: ScanOption = None,
    lines: LinesOption = None,
    nonzero: NonzeroOption = False,
    order: OrderOption = Order.RATE,
    compare: CompareOption = None,
    crossing_rate: Annotated[
        float | None,
        typer.Option(
            "--crossing-rate",
            metavar="HZ",
            help="Rate of bunch crossings, or of other events of the chain, represented by INPUT; by default that of "
            "the chain, 30e6 for lhcb.",
        ),
    ] = None,
    geometry: GeometryOption = None,
    conditions: ConditionsOption = None,
    backend: BackendOption = "auto",
    threads: ThreadsOption = 0,
    device: DeviceOption = 0,
    encoding: Annotated[
        str, typer.Option("--encoding", help="Banks to read if events hold the same hits twice.")
    ] = AUTO,
    chain: ChainOption = DEFAULT_CHAIN,
    json: JsonOption = None,
    report: ReportOption = None,
) -> None:
    """Compute rates of lines on minimum bias: inclusive, exclusive, total, overlaps, and kept bytes.

    Every event of INPUT counts as one bunch crossing, also an event without collision; for other chains as one event of
    theirs, such as a sub-slice of time. Margins of time slices do not count: their sub-slices are in other slices.

    Examples: hltnode rates --cached minbias-enriched;
    hltnode rates minbias.mdf --scan Hlt1TrackMVA.alpha=0:500:11 --report rates.html
    """
    with user_errors():
        check_files(files or (), json, report, trigger, compare)
        if crossing_rate is not None and not 0 < crossing_rate < math.inf:
            raise ValueError(f"--crossing-rate {crossing_rate}: a finite rate above 0 is expected")
        known = installed_chain(chain)
        rate = known.event_rate if crossing_rate is None else replace(known.event_rate, hz=crossing_rate)
        results: Results = []
        studied = configurations(known, trigger, compare, sequence)
        choice = row_choice(lines, nonzero, order)
        choice.check([name for _, configuration in studied for name in configuration.line_names])
        scans_of = [read_scans(scan, configuration) for _, configuration in studied]
        files = files_or_cached(files, cached, chain, geometry)
        for (name, configuration), scans in zip(studied, scans_of, strict=True):
            deciding = DecidingPass(
                known,
                configuration,
                create_backend(backend, known.kernels, threads=thread_count(threads), device=device),
                known.with_sequence(configuration.sequence).load_geometry(geometry),
                lines=lines_of(scans),
                encoding=encoding,
                conditions=conditions,
            )
            prefilters = [prefilter.name for prefilter in configuration.prefilters]
            counts = RateCounts(configuration.line_names, scans, readout=known.readout, prefilters=prefilters)
            damage = DamageLog()
            streaming = deciding.engine.chain.streaming
            events = (
                read_all_tables(files, damage) if streaming is None else read_all_sub_slices(files, streaming, damage)
            )
            with counted_events(files, name) as progress:
                for decided in deciding.run(events):
                    varied = [decided.decisions(one.lines) for one in scans]
                    counts.add(decided.events, decided.fired, varied, decided.passed)
                    progress(len(decided.events))
            deciding.engine.close()
            head = described(files, name, known, configuration, deciding)
            results.append((name, head | counts.result(rate) | {"damage": asdict(damage)}))
        shown = chosen_lines(choice, results, rates_of_line)
        text = with_note(rates_text(shown), left_out_text(results, shown))
        write_results(results, json, report, lambda: _page(shown, text))
    echo(text)
    end_with_damage(damage)


def _page(results: Results, text: str) -> str:
    # Local import: only reports need matplotlib, an extra.
    from hltnode.processing.offline.pages.lines import rates_page

    return rates_page(results, text)
