"""hltnode replay: sends files of events, or simulated ones, to one or more nodes, as the readout would."""

import contextlib
import os
import signal
import socket
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
import zmq
from rich.markup import escape

from hltnode.client.fault_injection import FaultPlan
from hltnode.client.keys import load_client_keys
from hltnode.client.shared_memory import DEFAULT_BYTES, MIB
from hltnode.client.sockets import FeederKeys
from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    GeometryOption,
    JsonOption,
    KeyFileOption,
    ServerKeyOption,
    console,
    counted,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.mep_streams.replay_jobs import ReplayOptions, make_stream, replay_here, replay_in_jobs
from hltnode.daemon.commands.mep_streams.replay_screen import ReplayScreen
from hltnode.daemon.common import log
from hltnode.daemon.common.endpoints import check_option
from hltnode.daemon.common.reachability import require_node
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.mep_source import MepStream
from hltnode.daemon.replay.pacing import parse_rate
from hltnode.daemon.replay.single_node import FeedReport
from hltnode.daemon.replay.site import Site, make_identities

# Ranges of MEP ids, files or sources in one line.
SHOWN_RANGES = 20


def replay(
    to: Annotated[
        list[str],
        typer.Option(
            "--to",
            metavar="ENDPOINT",
            help="Data endpoint of a node, tcp://HOST:PORT or ipc://PATH, or shm://PATH, the socket for shared memory "
            "of a node of this machine (shared_memory.socket); repeatable.",
        ),
    ],
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES|FOLDER", help="MDF (also gzip), Run-3 MEP, 2019 MEP files; folders of them."),
    ] = None,
    control: Annotated[
        list[str] | None,
        typer.Option("--control", metavar="ENDPOINT", help="Control endpoint of each --to; default: the next port."),
    ] = None,
    rate: Annotated[
        str,
        typer.Option(
            "--rate",
            metavar="RATE",
            help="Events per second; recorded: as the times in the ODIN banks say; greatest: as fast as the node takes "
            "them.",
        ),
    ] = "greatest",
    loop: Annotated[
        bool,
        typer.Option("--loop", help="Begin again at the end of the input, until Ctrl-C or SIGTERM; not with --part."),
    ] = False,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Number of times that the input is replayed.")] = 1,
    run: Annotated[
        int | None,
        typer.Option(
            "--run", min=1, max=0xFFFFFFFF, help="Run number, also in the ODIN banks; default: that of the input."
        ),
    ] = None,
    events_per_mep: Annotated[
        int, typer.Option("--events-per-mep", min=1, max=65535, help="Packing; Run-3 MEP files keep theirs.")
    ] = 100,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, help="Processes that share the sources, each with one connection.")
    ] = 1,
    sources: Annotated[
        int, typer.Option("--sources", min=0, help="Feeder connections that share the sources; 0: one per source.")
    ] = 1,
    part: Annotated[
        str | None,
        typer.Option("--part", metavar="I/N", help="Run only connection I of N, the others in other processes."),
    ] = None,
    supervisor: Annotated[
        str | None,
        typer.Option("--supervisor", metavar="ENDPOINT", help="Where part 1 sends the assignments to the other parts."),
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option(
            "--memory",
            metavar="FILE",
            help="Where the process that assigns MEPs to several nodes remembers its assignments, so that it can be "
            "killed and started again; default: a file of this run, name and nodes in ~/.local/state/hltnode.",
        ),
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Simulated events instead of files.")] = False,
    n: Annotated[int, typer.Option("-n", "--events", min=1, help="Number of simulated events.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulation and of the faults.")] = 1,
    with_truth: Annotated[
        bool, typer.Option("--with-truth", help="Send truth banks of simulated events, too; no readout has them.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for a node that is not there yet; else only three seconds.")
    ] = False,
    name: Annotated[str | None, typer.Option("--name", help="Name of this feeder; default: the host name.")] = None,
    fault: Annotated[
        str | None,
        typer.Option(
            "--fault",
            metavar="NAME=VALUE,...",
            help="Rehearse: probabilities per fragment of drop, duplicate, reorder, corrupt and delay, and kill-after "
            "(fragments of a connection after which this process kills itself).",
        ),
    ] = None,
    server_key: ServerKeyOption = None,
    key_file: KeyFileOption = None,
    encrypt_data: Annotated[
        bool, typer.Option("--encrypt-data", help="CURVE on the data connection too (security.encrypt_data).")
    ] = False,
    segment_mib: Annotated[
        int,
        typer.Option(
            "--segment-mib", min=1, help="MiB of memory shared with nodes at shm://PATH; a MEP takes an eighth at most."
        ),
    ] = DEFAULT_BYTES // MIB,
    chain: Annotated[
        str,
        typer.Option(
            "--chain", metavar="NAME", help="The chain that the data are for; a node of another chain refuses them."
        ),
    ] = DEFAULT_CHAIN,
    geometry: GeometryOption = None,
    json: JsonOption = None,
) -> None:
    """Send events to a node, MEP by MEP, and wait until it has acknowledged all of them.

    A node must be there within three seconds; with --wait it may come later. One that is lost is waited for and named
    every five seconds, and what was not acknowledged is sent again. The space bar, or SIGUSR1, pauses; the space bar,
    or SIGCONT, goes on. Files are read once before anything is sent, to learn their sources; a foreign file in a folder
    is left out and named.

    The exit code is 0 when the node has accepted and acknowledged everything, 1 when it has not, 2 without input or
    node, 130 after Ctrl-C and 143 after SIGTERM. With --loop the first of these ends the input, and what was sent is
    waited for.

    Example: hltnode replay minbias.mdf --to tcp://127.0.0.1:5555 --jobs 4 --events-per-mep 100 --loop
    """
    log.configure("warning", LogFormat.CONSOLE)
    # A pause before there is anything to pause does not end the process.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    with user_errors():
        require_writable(json, reads=inputs or ())
        if bool(inputs) == simulate:
            raise FeedError("either FILES or --simulate is expected")
        if jobs > 1 and (sources != 1 or part is not None or supervisor is not None):
            raise FeedError(
                "--jobs: each process has one connection and one part; --sources, --part and --supervisor "
                "are for processes that are started one by one"
            )
        if loop and repeat != 1:
            raise FeedError("--loop and --repeat: expected one of them")
        if loop and part is not None:
            raise FeedError(
                "--loop and --part: processes that are started one by one do not end after the same MEP, and one that "
                "some of them have not sent is incomplete: expected --repeat, or --jobs instead of --part"
            )
        for option, endpoints in (("--to", to), ("--control", control or ())):
            for endpoint in endpoints:
                check_option(option, endpoint)
        keys = load_client_keys(server_key, key_file)
        if encrypt_data and keys is None:
            raise FeedError("--encrypt-data: --server-key and --key-file are expected")
        options = ReplayOptions(
            inputs=tuple(inputs or ()),
            n_simulated=n,
            seed=seed,
            geometry=geometry,
            chain=chain,
            events_per_mep=events_per_mep,
            repeat=None if loop else repeat,
            run=run,
            with_truth=with_truth,
            to=tuple(to),
            control=None if control is None else tuple(control),
            keys=FeederKeys(keys, encrypt_data),
            supervisor=supervisor,
            memory=memory,
            name=name or socket.gethostname(),
            connections=sources,
            part=part,
            rate=parse_rate(rate),
            faults=None if fault is None else FaultPlan.parse(fault),
            segment_bytes=segment_mib * MIB,
        )
        stream = make_stream(options)
        say_what_is_special(stream)
        # Errors of the options come before those of the node.
        make_identities(stream, options.name, options.connections, options.part, options.chain)
        site = Site.of(to, control, supervisor, part, memory, options.keys)
        if not wait:
            require_node(zmq.DEALER, [control for _, control in site.nodes], keys)
            if in_memory := [data for data, _ in site.nodes if data.startswith("shm://")]:
                require_node(zmq.DEALER, in_memory, keys)
        with ReplayScreen(console, stream.n_events) as screen:
            if jobs > 1:
                report, ended_by = replay_in_jobs(options, stream, jobs, screen, _keyboard)
            else:
                report, ended_by = replay_here(options, stream, screen, _keyboard)
        write_json(json, {**asdict(report), "input": describe_input(stream)})
    print_report(report)
    if ended_by is not None:
        raise typer.Exit(128 + ended_by)
    raise typer.Exit(0 if report.complete and not report.unconfirmed else 1)


def describe_input(stream: MepStream) -> dict[str, Any]:
    """What was found in the input, for the JSON report."""
    files = stream.files
    return {
        "files": [] if files is None else [str(file.path) for file in files.files],
        "left_out": {} if files is None else {str(path): why for path, why in files.left_out.items()},
        "sources": len(stream.sources),
        "late_sources": {str(source): event for source, event in stream.late_sources.items()},
        "lacking": {str(path): len(sources) for path, sources in stream.lacking.items()},
        "unsent_types": stream.unsent_types,
    }


def say_what_is_special(stream: MepStream) -> None:
    """Name the files that are left out, sources that are not in the first events, files that lack some, and types of
    banks that are not sent."""
    lines = []
    if stream.files is not None and (left_out := stream.files.left_out):
        lines.append(f"left out: {counted(len(left_out), 'file')}")
        lines += [f"  {path}: {why}" for path, why in list(left_out.items())[:SHOWN_RANGES]]
        if len(left_out) > SHOWN_RANGES:
            lines.append(f"  and {len(left_out) - SHOWN_RANGES} more")
    if late := stream.late_sources:
        source, event = min(late.items(), key=lambda item: item[1])
        lines.append(
            f"{len(late)} of {len(stream.sources)} sources appear late, the first one, {source}, in event {event}: "
            "until then they send that they have no bank"
        )
    for path, lacking in list(stream.lacking.items())[:SHOWN_RANGES]:
        lines.append(
            f"{path} has no bank of {len(lacking)} of {counted(len(stream.sources), 'source')}, the first one is "
            f"{lacking[0]}: they send that they have none"
        )
    if len(stream.lacking) > SHOWN_RANGES:
        lines.append(f"and {counted(len(stream.lacking) - SHOWN_RANGES, 'more file')} without some of the sources")
    if unsent := stream.unsent_types:
        lines.append(
            f"not sent: banks of {'type' if len(unsent) == 1 else 'types'} {', '.join(map(str, unsent))}, whose source "
            "is not known: they need source ids with a sub-detector"
        )
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_report(report: FeedReport) -> None:
    """What was fed, and what became of it."""
    typer.echo(
        f"{counted(report.meps, 'MEP')}, {counted(report.events, 'event')} in {report.seconds:.2f} s: "
        f"{report.events / report.seconds:.0f} events/s"
    )
    typer.echo(
        f"{counted(report.fragments, 'fragment')}, {report.resent} sent again; "
        f"{counted(report.unacknowledged, 'MEP')} not acknowledged"
    )
    if report.reassigned:
        typer.echo(f"{counted(report.reassigned, 'MEP')} assigned to another node")
    if report.injected:
        typer.echo("injected: " + ", ".join(f"{count} {name}" for name, count in report.injected.items()))
    for node, ranges in report.unconfirmed.items():
        typer.echo(
            f"revoked from {node}, which did not return: MEPs {shown(ranges)}; its files may hold them a second time"
        )
    for reason, count in report.refused.items():
        typer.echo(f"not accepted: {counted(count.fragments, 'fragment')} of {counted(count.meps, 'MEP')}, {reason}")
    if report.unacknowledged:
        typer.echo(f"not acknowledged: MEPs {shown(report.unacknowledged_meps)}")
    if report.error:
        console.print(f"[red]error:[/red] {escape(report.error)}", highlight=False, soft_wrap=True)


def shown(ranges: Sequence[tuple[int, int]]) -> str:
    """The first ones of many ranges of MEP ids."""
    text = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges[:SHOWN_RANGES])
    return text if len(ranges) <= SHOWN_RANGES else f"{text} and {len(ranges) - SHOWN_RANGES} more ranges"


@contextlib.contextmanager
def _keyboard() -> Iterator[int | None]:
    """The descriptor of the terminal, whose keys come one by one; None if there is none, or it is another job's."""
    try:
        number = sys.stdin.fileno()
        is_ours = os.isatty(number) and os.tcgetpgrp(number) == os.getpgrp()
    except (OSError, ValueError):
        is_ours = False
    if not is_ours:
        yield None
        return
    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    try:
        yield number
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
