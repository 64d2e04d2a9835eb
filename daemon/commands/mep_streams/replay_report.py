"""What a replay tells its user: its input before it sends, and the result of each run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.markup import escape

from hltnode.daemon.commands.common import console, counted, unknown_source_text
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.replay.mep_source import MepStream
from hltnode.daemon.replay.run_sequence import RunOutcome, RunResult, sum_of_reports
from hltnode.daemon.replay.single_node import FeedReport

# Most ranges of MEP ids, files or sources in a message.
SHOWN_RANGES = 20


def describe_outcomes(outcomes: Sequence[RunOutcome]) -> dict[str, Any]:
    """The totals, and each run, for the JSON report."""
    reports = [outcome.report for outcome in outcomes if outcome.report is not None]
    return {
        **asdict(sum_of_reports(reports)),
        "runs": [
            {
                "run": outcome.run,
                "result": outcome.result,
                "complete": outcome.complete,
                **({} if outcome.report is None else asdict(outcome.report)),
            }
            for outcome in outcomes
        ],
    }


def describe_input(streams: Sequence[MepStream]) -> dict[str, Any]:
    """Description of the input, for the JSON report; late and missing sources by run if there are several."""
    files = [file.path for stream in streams if stream.files is not None for file in stream.files.files]
    left_out = {} if streams[0].files is None else streams[0].files.left_out
    return {
        "files": list(dict.fromkeys(map(str, files))),
        "left_out": {str(path): why for path, why in left_out.items()},
        "sources": len({source for stream in streams for source in stream.sources}),
        "late_sources": _by_run(
            streams, lambda stream: {str(source): event for source, event in stream.late_sources.items()}
        ),
        "lacking": _by_run(
            streams, lambda stream: {str(path): len(sources) for path, sources in stream.lacking.items()}
        ),
        "unsent_types": sorted({each for stream in streams for each in stream.unsent_types}),
        "damage": asdict(streams[0].damage),
    }


def _by_run(streams: Sequence[MepStream], describe: Callable[[MepStream], dict[str, Any]]) -> dict[str, Any]:
    if len(streams) == 1:
        return describe(streams[0])
    return {str(stream.run): described for stream in streams if (described := describe(stream))}


def say_what_is_special(streams: Sequence[MepStream]) -> None:
    """Report skipped files, several runs, late sources, files without some sources, and unsent types of banks."""
    lines = []
    files = streams[0].files
    if files is not None and (left_out := files.left_out):
        lines.append(f"skipped: {counted(len(left_out), 'file')}")
        lines += [f"  {path}: {why}" for path, why in list(left_out.items())[:SHOWN_RANGES]]
        if len(left_out) > SHOWN_RANGES:
            lines.append(f"  and {len(left_out) - SHOWN_RANGES} more")
    if len(streams) > 1:
        shown_runs = ", ".join(str(stream.run) for stream in streams[:SHOWN_RANGES])
        more = " ..." if len(streams) > SHOWN_RANGES else ""
        lines.append(f"the input has events of {len(streams)} runs, which are sent one by one: {shown_runs}{more}")
    for stream in streams:
        of_run = f"run {stream.run}: " if len(streams) > 1 else ""
        lines += [f"{of_run}{line}" for line in _special_of_run(stream)]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _special_of_run(stream: MepStream) -> Iterator[str]:
    if late := stream.late_sources:
        source, event = min(late.items(), key=lambda item: item[1])
        yield (
            f"{len(late)} of {len(stream.sources)} sources appear late, the first one, {source}, in event {event}: "
            "until then they send empty fragments"
        )
    for path, lacking in list(stream.lacking.items())[:SHOWN_RANGES]:
        yield (
            f"{path} has no bank of {len(lacking)} of {counted(len(stream.sources), 'source')}, the first is "
            f"{lacking[0]}: they send empty fragments"
        )
    if len(stream.lacking) > SHOWN_RANGES:
        yield f"and {counted(len(stream.lacking) - SHOWN_RANGES, 'more file')} without some of the sources"
    if unsent := stream.unsent_types:
        yield unknown_source_text("not sent", unsent)


def print_outcomes(outcomes: Sequence[RunOutcome]) -> None:
    """Print the result of each run, and the totals if there are several."""
    if len(outcomes) == 1:
        if (report := outcomes[0].report) is not None:
            print_report(report)
        return
    for outcome in outcomes:
        if outcome.report is not None:
            echo(f"run {outcome.run}:")
            print_report(outcome.report)
        elif outcome.result is RunResult.STORED_BEFORE:
            echo(f"run {outcome.run}: stored by an earlier replay" + ("" if outcome.complete else ", not complete"))
        else:
            echo(f"run {outcome.run}: not sent; start the same command again to continue")
    reports = [outcome.report for outcome in outcomes if outcome.report is not None]
    if len(reports) > 1:
        echo(f"{len(reports)} runs:")
        print_report(replace(sum_of_reports(reports), error=""))


def print_report(report: FeedReport) -> None:
    """Print the result: sent, resent, unacknowledged and refused data."""
    echo(
        f"{counted(report.meps, 'MEP')}, {counted(report.events, 'event')} in {report.seconds:.2f} s: "
        f"{report.events / report.seconds:.0f} events/s"
    )
    echo(
        f"{counted(report.fragments, 'fragment')}, {report.resent} sent again; "
        f"{counted(report.unacknowledged, 'MEP')} not acknowledged"
    )
    if report.earlier:
        echo(
            f"{counted(report.earlier, 'MEP')} not sent: the node acknowledged them to an earlier replay of this run; "
            "to send them again, give another run number (--run)"
        )
    if report.reassigned:
        echo(f"{counted(report.reassigned, 'MEP')} assigned to another node")
    if report.injected:
        echo("injected: " + ", ".join(f"{count} {name}" for name, count in report.injected.items()))
    for node, ranges in report.unconfirmed.items():
        echo(f"revoked from {node}, which did not return: MEPs {shown(ranges)}; its files may hold them a second time")
    for reason, count in report.refused.items():
        echo(f"not accepted: {counted(count.fragments, 'fragment')} of {counted(count.meps, 'MEP')}, {reason}")
    if report.unacknowledged:
        echo(f"not acknowledged: MEPs {shown(report.unacknowledged_meps)}")
    if report.error:
        console.print(f"[red]error:[/red] {escape(report.error)}", highlight=False, soft_wrap=True)


def shown(ranges: Sequence[tuple[int, int]]) -> str:
    """Text of the first ranges of MEP ids."""
    text = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges[:SHOWN_RANGES])
    return text if len(ranges) <= SHOWN_RANGES else f"{text} and {len(ranges) - SHOWN_RANGES} more ranges"
