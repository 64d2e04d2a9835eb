"""hltnode stream: the sources of a detector without a trigger signal, which send simulated time in real time."""

import asyncio
import signal
import socket
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop
import zmq

from hltnode.client.keys import load_client_keys
from hltnode.client.sockets import FeederKeys
from hltnode.daemon.commands.common import (
    ChainOption,
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
from hltnode.daemon.commands.mep_streams.replay_report import shown
from hltnode.daemon.commands.mep_streams.replay_screen import ReplayScreen
from hltnode.daemon.commands.mep_streams.simulated_stream import (
    Stretch,
    sample_at_rate,
    streaming_of,
    write_stretch,
)
from hltnode.daemon.commands.mep_streams.stream_jobs import StreamOptions, make_replay, make_site, stream_in_jobs
from hltnode.daemon.commands.result_files import result_file
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.common import log
from hltnode.daemon.common.endpoints import check_option
from hltnode.daemon.common.reachability import require_node
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.replay.real_time import IN_TIME_NS, Lateness, RealTimePacer
from hltnode.daemon.replay.replaying import Replaying, ReplayState
from hltnode.daemon.replay.single_node import FeedReport
from hltnode.processing.framework.streaming import MAX_SUB_SLICES
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.selection.trigger_chain import installed_chain

BEHIND_SECONDS = 5.0
"""Period of the lines that say how far the stream is behind."""
NS_PER_MS = 1e6
MAX_SECONDS = 1e8
"""Three years, in which numbers of slices are far from any bound."""


def stream(
    chain: ChainOption,
    to: Annotated[
        str, typer.Option("--to", metavar="ENDPOINT", help="Data endpoint of the node: tcp://HOST:PORT or ipc://PATH.")
    ] = "tcp://127.0.0.1:5555",
    control: Annotated[
        str | None,
        typer.Option("--control", metavar="ENDPOINT", help="Its control endpoint; default: the next port."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            metavar="HZ",
            help="Rate of the detector in the unit of its chain, such as stopped muons per second, or hits per second "
            "of a PMT; default: that of hltnode simulate.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=1e-6, help="Length of the stream; without it, it ends with Ctrl-C or SIGTERM."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulation.")] = 1,
    sub_slices: Annotated[
        int | None,
        typer.Option(
            "--sub-slices",
            min=1,
            max=MAX_SUB_SLICES,
            help="Sub-slices of a slice without its margins; default: those of the chain.",
        ),
    ] = None,
    slices: Annotated[
        int, typer.Option("--slices", min=1, max=100_000, help="Simulated slices, which the stream repeats.")
    ] = 4,
    sources: Annotated[
        int, typer.Option("--sources", min=0, help="Feeder connections that share the sources; 0: one per source.")
    ] = 0,
    processes: Annotated[
        int,
        typer.Option("--processes", min=1, help="Processes that share the sources, each with one feeder connection."),
    ] = 1,
    truth: Annotated[
        Path | None,
        result_file("--truth", metavar="FILE.mdf", help="File for the simulated sub-slices with their truth."),
    ] = None,
    run: Annotated[
        int | None,
        typer.Option("--run", min=1, max=0xFFFFFFFF, help="Run number; default: the seconds since 1970."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the feeders; default: the host name.")] = None,
    geometry: GeometryOption = None,
    server_key: ServerKeyOption = None,
    key_file: KeyFileOption = None,
    encrypt_data: Annotated[
        bool, typer.Option("--encrypt-data", help="Use CURVE on the data connection as well (security.encrypt_data).")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Send the simulated hits of a streaming chain to a node in real time, each source on a connection of its own.

    A slice is sent when its time is over. What the machine or the node delays is not hidden: the stream says by how
    much it is behind, catches up as fast as it can, and reports every late slice. The simulation makes a stretch of the
    stream before, which is repeated; ids and times go on.

    The exit code is 0 only if the node accepted and acknowledged every slice, otherwise 1; 2 without a node. The first
    Ctrl-C or SIGTERM ends the stream and waits for the acknowledgements; after the second one the code is 130 or 143.

    Example: hltnode stream --chain km3net --seconds 10 --to tcp://127.0.0.1:5555 --truth truth.mdf
    """
    log.configure("warning", LogFormat.CONSOLE)
    with user_errors():
        require_writable(json, truth)
        if seconds is not None and seconds > MAX_SECONDS:
            raise ValueError(f"--seconds {seconds:g}: expected {MAX_SECONDS:g} at most")
        check_option("--to", to)
        if control is not None:
            check_option("--control", control)
        keys = load_client_keys(server_key, key_file)
        if encrypt_data and keys is None:
            raise ValueError("--encrypt-data: expected --server-key and --key-file")
        of_chain = installed_chain(chain)
        streaming = streaming_of(of_chain)
        sub_slices = sub_slices or streaming.sub_slices
        most = MAX_SUB_SLICES - streaming.margins
        if sub_slices > most:
            raise ValueError(f"--sub-slices {sub_slices}: a slice of chain {chain} has {most} at most, beside margins")
        if processes > 1 and sources:
            raise ValueError("--processes: each process has one connection, so --sources cannot be given")
        run = run or int(time.time())
        sample = sample_at_rate(chain, SampleRequest(seed=seed, run=run, geometry=geometry), rate)
        slice_ns = sub_slices * streaming.sub_slice_ns
        with tempfile.TemporaryDirectory(prefix="hltnode-") as folder:
            options = StreamOptions(
                slices=Path(folder) / "stretch.mep",
                chain=chain,
                sub_slices=sub_slices,
                slice_ns=slice_ns,
                n_slices=None if seconds is None else max(1, round(seconds * 1e9 / slice_ns)),
                to=to,
                control=control,
                keys=FeederKeys(keys, encrypt_data),
                run=run,
                name=name or socket.gethostname(),
                connections=sources,
                seed=seed,
            )
            require_node(zmq.DEALER, [each for _, each in make_site(options).nodes], keys)
            stretch = write_stretch(of_chain, sample, sub_slices, slices, options.slices, truth, run)
            n_sources = len(options.meps().sources)
            report, lateness, ended_by = _send(options, processes)
        result = describe(report, lateness, stretch, n_sources, run, truth)
        write_json(json, result)
    echo(text_of(result))
    if ended_by is not None:
        raise typer.Exit(128 + ended_by)
    raise typer.Exit(0 if report.complete else 1)


def _send(options: StreamOptions, processes: int) -> tuple[FeedReport, Lateness, int | None]:
    """Send the stream; returns the report, the lateness, and the signal that ended it early."""
    # As in replay: the signal must not end the process before it means a pause.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    n_events = None if options.n_slices is None else options.n_slices * options.sub_slices
    with ReplayScreen(console, n_events) as screen:
        said_at = 0.0

        def say_behind(behind_ns: int) -> None:
            nonlocal said_at
            now = time.monotonic()
            if behind_ns > IN_TIME_NS and now - said_at >= BEHIND_SECONDS:
                said_at = now
                screen.say(f"behind real time by {behind_ns / NS_PER_MS:.0f} ms")

        if processes > 1:
            return stream_in_jobs(options, processes, screen, say_behind)
        pacer = RealTimePacer(options.slice_ns)

        def show(state: ReplayState) -> None:
            screen.show(state)
            say_behind(pacer.behind_ns)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            report, ended_by = runner.run(Replaying(make_replay(options, pacer), show).run())
    assert report is not None
    return report, pacer.lateness, ended_by


def describe(
    report: FeedReport, lateness: Lateness, stretch: Stretch, sources: int, run: int, truth: Path | None
) -> dict[str, Any]:
    """The result as a JSON object. Times are in ms where a name says nothing else."""
    return {
        "run": run,
        "sources": sources,
        "slices": report.meps,
        "hits": stretch.hits_of_first(report.meps),
        "stream_seconds": report.meps * stretch.slice_ns * 1e-9,
        "seconds": report.seconds,
        "in_time": lateness.in_time,
        "late": lateness.late,
        "behind_ms": lateness.last_ns / NS_PER_MS,
        "largest_delay_ms": lateness.largest_ns / NS_PER_MS,
        "acknowledged": report.meps - report.unacknowledged,
        "unacknowledged": [list(span) for span in report.unacknowledged_meps],
        "fragments": report.fragments,
        "bytes": report.bytes,
        "resent": report.resent,
        "refused": {reason: count.fragments for reason, count in report.refused.items()},
        "error": report.error,
        "slice_ns": stretch.slice_ns,
        "sub_slice_ns": stretch.streaming.sub_slice_ns,
        "repeats_after_sub_slices": stretch.n_slices * stretch.core,
        "truth": None if truth is None else str(truth),
    }


def text_of(result: dict[str, Any]) -> str:
    """The result in lines of at most 80 columns; a path has its own line."""
    late = (
        counted(result["late"], "slice") + f", at most {result['largest_delay_ms']:.0f} ms"
        if result["late"]
        else "none"
    )
    lines = [
        "",
        f"{counted(result['sources'], 'source')} sent {result['stream_seconds']:.4g} s of time in "
        f"{result['seconds']:.4g} s.",
        "",
        f"  sent           {counted(result['slices'], 'slice')} with {counted(result['hits'], 'hit')}",
        f"  in time        {counted(result['in_time'], 'slice')}, within {IN_TIME_NS / NS_PER_MS:.0f} ms of their end",
        f"  late           {late}",
        f"  acknowledged   {counted(result['acknowledged'], 'slice')}",
        f"  sent again     {counted(result['resent'], 'fragment')} of {result['fragments']}",
    ]
    if result["unacknowledged"]:
        lines.append(f"  missing        slices {shown([(first, last) for first, last in result['unacknowledged']])}")
    lines += [f"  refused        {counted(n, 'fragment')}: {reason}" for reason, n in result["refused"].items()]
    if result["late"]:
        lines += ["", f"The stream did NOT keep up: behind by {result['behind_ms']:.0f} ms at the end."]
    if result["truth"] is not None:
        lines += [
            "",
            f"Truth, of {result['repeats_after_sub_slices']} sub-slices that the stream repeats:",
            f"  {result['truth']}",
        ]
    if result["error"]:
        lines += ["", f"error: {result['error']}"]
    return "\n".join(lines)
