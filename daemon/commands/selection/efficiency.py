"""hltnode efficiency: which signal decays the lines of a trigger configuration accept."""

import typer

from hltnode.daemon.commands.common import (
    BackendOption,
    DeviceOption,
    GeometryOption,
    JsonOption,
    SequenceOption,
    ThreadsOption,
    TriggerOption,
    console,
    thread_count,
    user_errors,
)
from hltnode.daemon.commands.lhcb_options import VeloBanksOption
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
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import read_all_events
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.processing.lhcb.offline.validation.selections.sample import efficiencies_of
from hltnode.processing.lhcb.offline.validation.selections.tables import efficiency_text
from hltnode.processing.offline.truth_faults import TruthFaults
from hltnode.processing.selection.studies.decided_events import DecidingPass
from hltnode.processing.selection.studies.scans import lines_of


def efficiency(
    files: FilesArgument,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    scan: ScanOption = None,
    compare: CompareOption = None,
    geometry: GeometryOption = None,
    backend: BackendOption = "auto",
    threads: ThreadsOption = 0,
    device: DeviceOption = 0,
    velo_banks: VeloBanksOption = "auto",
    json: JsonOption = None,
    report: ReportOption = None,
) -> None:
    """Efficiencies of the lines on simulated signal decays, and how often the signal itself has triggered: of the
    decays whose products are all long-reconstructible in 2 < eta < 5, and of all events.

    Example: hltnode efficiency bsphiphi.mdf --scan Hlt1TwoTrackMVA.min_response=0.9:0.99:10 --report efficiency.html
    """
    with user_errors():
        check_files(files, json, report, trigger, compare)
        results: Results = []
        studied = configurations(CHAIN, trigger, compare, sequence)
        scans_of = [read_scans(scan, configuration) for _, configuration in studied]
        for (name, configuration), scans in zip(studied, scans_of, strict=True):
            chain = CHAIN.with_sequence(configuration.sequence)
            faults = TruthFaults()
            deciding = DecidingPass(
                CHAIN,
                configuration,
                create_backend(backend, CHAIN.kernels, threads=thread_count(threads), device=device),
                chain.load_geometry(geometry),
                lines=(*configuration.lines, *lines_of(scans)),
                retain=retained(chain.sequence),
                encoding=velo_banks,
            )
            with counted_events(files, name) as progress:
                found = efficiencies_of(deciding, read_all_events(files), configuration.lines, scans, faults, progress)
            deciding.engine.close()
            head = described(files, name, CHAIN, configuration, deciding.engine)
            result = head | found.result()
            results.append((name, result | ({"truth": faults.result()} if faults.events else {})))
        text = efficiency_text(results)
        write_results(results, json, report, lambda: _page(results, text))
    typer.echo(text)
    if faults.events:
        console.print(
            f"[yellow]{faults.events} events are left out, their truth cannot be used:[/yellow] "
            + "; ".join(f"{fault} ({n})" for fault, n in faults.counts.items()),
            soft_wrap=True,
        )


def _page(results: Results, text: str) -> str:
    # Only reports need matplotlib, an extra.
    from hltnode.processing.lhcb.offline.validation.reports.selection_report import efficiency_page

    return efficiency_page(results, text)
