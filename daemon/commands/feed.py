"""hltnode feed: sources of data, one connection each, for a node."""

import asyncio
import contextlib
import re
import signal
import socket
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
import uvloop
import zmq.asyncio
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hltnode.daemon import log
from hltnode.daemon.commands.common import (
    GeometryOption,
    JsonOption,
    KeyFileOption,
    ServerKeyOption,
    console,
    load_geometry,
    user_errors,
    write_json,
)
from hltnode.daemon.curve_keys import load_client_keys
from hltnode.daemon.feeder import (
    Feeder,
    FeederIdentity,
    FeederKeys,
    FeederRefusedError,
    FeedReport,
    feed_meps,
    make_report,
    share,
)
from hltnode.daemon.mep_source import FeedError, FeedMep, MepStream, meps_of_files, meps_of_simulation
from hltnode.daemon.vocabulary import LogFormat
from hltnode.processing.simulation.velo_generator import DEFAULT_NU, DEFAULT_RUN, simulate_events

# As in the configuration of the node.
MAX_FRAGMENT_BYTES = 16 * 1024 * 1024 - 40


def feed(
    to: Annotated[str, typer.Option("--to", metavar="ENDPOINT", help="Data endpoint of the node, tcp://HOST:PORT.")],
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILES", help="More input files.")] = None,
    control: Annotated[
        str | None, typer.Option("--control", metavar="ENDPOINT", help="Control endpoint; default: port after --to.")
    ] = None,
    sources: Annotated[
        int, typer.Option("--sources", min=0, help="Feeder connections that share the sources; 0: one per source.")
    ] = 1,
    part: Annotated[
        str | None, typer.Option("--part", metavar="I/N", help="Be only connection I of N (several processes).")
    ] = None,
    inputs: Annotated[
        list[Path] | None, typer.Option("--input", metavar="FILES", help="MDF, MEP or 2019 MEP files.")
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Feed simulated events.")] = False,
    n: Annotated[int, typer.Option("-n", "--events", min=1, help="Number of simulated events.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulation.")] = 1,
    events_per_mep: Annotated[
        int, typer.Option("--events-per-mep", min=1, max=65535, help="Packing; Run-3 MEP files keep theirs.")
    ] = 100,
    rate: Annotated[float | None, typer.Option("--rate", min=0.001, help="At most so many events per second.")] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Go through the input so many times.")] = 1,
    run: Annotated[int | None, typer.Option("--run", min=1, help="Run number; default: that of the input.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of this feeder; default: the host name.")] = None,
    server_key: ServerKeyOption = None,
    key_file: KeyFileOption = None,
    encrypt_data: Annotated[
        bool, typer.Option("--encrypt-data", help="CURVE on the data connection too (security.encrypt_data).")
    ] = False,
    geometry: GeometryOption = None,
    json: JsonOption = None,
) -> None:
    """Send events to a node, MEP by MEP, and wait until it has acknowledged all of them.

    A node or connection that dies is waited for, and what was not acknowledged is sent again.

    Example: hltnode feed --to tcp://127.0.0.1:5555 --sources 4 --input minbias.mdf --events-per-mep 100 --repeat 10
    """
    log.configure("warning", LogFormat.CONSOLE)
    paths = [*(inputs or []), *(files or [])]
    with user_errors():
        if bool(paths) == simulate:
            raise FeedError("either --input FILES or --simulate is expected")
        if simulate:
            detector = load_geometry(geometry)
            stream = meps_of_simulation(
                lambda: simulate_events(n, seed, geometry=detector, nu=DEFAULT_NU, run=run or DEFAULT_RUN),
                events_per_mep=events_per_mep,
                repeat=repeat,
                run=run,
            )
        else:
            stream = meps_of_files(paths, events_per_mep=events_per_mep, repeat=repeat, run=run)
        keys = load_client_keys(server_key, key_file)
        if encrypt_data and keys is None:
            raise FeedError("--encrypt-data: --server-key and --key-file are expected")
        identities = make_identities(stream, name or socket.gethostname(), sources, part)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                report = runner.run(
                    run_feeders(
                        stream, identities, to, control or control_endpoint(to), rate, FeederKeys(keys, encrypt_data)
                    )
                )
            except FeederRefusedError as error:
                console.print(f"[red]error:[/red] {error}", highlight=False)
                raise typer.Exit(1) from error
        write_json(json, asdict(report))
    typer.echo(
        f"{report.meps} MEPs, {report.events} events in {report.seconds:.2f} s: "
        f"{report.events / report.seconds:.0f} events/s, {report.fragments} fragments ({report.resent} sent again), "
        f"{report.unacknowledged} MEPs not acknowledged"
    )
    for reason, count in report.refused.items():
        typer.echo(f"refused for good: {count} fragments, {reason}")
    raise typer.Exit(0 if report.complete else 1)


def control_endpoint(data: str) -> str:
    """The control endpoint beside a data endpoint: the next port. Raises FeedError where there is no port."""
    match = re.fullmatch(r"(tcp://.+:)(\d+)", data)
    if match is None:
        raise FeedError(f"{data}: --control is needed, because the next port cannot be derived")
    return f"{match[1]}{int(match[2]) + 1}"


def make_identities(stream: MepStream, name: str, connections: int, part: str | None) -> list[FeederIdentity]:
    """Who the connections of this process are. Raises FeedError for a part that does not exist."""
    shares = share(stream.sources, connections)
    mine = range(len(shares))
    if part is not None:
        match = re.fullmatch(r"(\d+)/(\d+)", part)
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= len(stream.sources):
            raise FeedError(f"--part {part}: expected I/N with 1 <= I <= N <= {len(stream.sources)} sources")
        shares = share(stream.sources, int(match[2]))
        mine = range(int(match[1]) - 1, int(match[1]))
    return [
        FeederIdentity(
            name=f"{name}:{i + 1}/{len(shares)}",
            run=stream.run,
            sources=shares[i],
            events_per_mep=stream.events_per_mep,
            max_fragment_bytes=MAX_FRAGMENT_BYTES,
        )
        for i in mine
    ]


async def run_feeders(
    stream: MepStream, identities: list[FeederIdentity], data: str, control: str, rate: float | None, keys: FeederKeys
) -> FeedReport:
    """Feed until everything is acknowledged or a signal comes; the report says what is left then."""
    loop = asyncio.get_running_loop()
    context = zmq.asyncio.Context()
    columns = (SpinnerColumn(), TextColumn("{task.completed} events fed"), TimeElapsedColumn())
    fed = [0, 0]
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=None)

        def counted() -> Iterator[FeedMep]:
            for mep in stream:
                yield mep
                fed[0] += 1
                fed[1] += mep.n_events
                progress.update(bar, completed=fed[1])

        begin = loop.time()
        async with contextlib.AsyncExitStack() as stack:
            feeders = [
                await stack.enter_async_context(Feeder(context, data, control, identity, keys))
                for identity in identities
            ]
            feeding = asyncio.create_task(feed_meps(counted(), feeders, rate=rate))
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, feeding.cancel)
            try:
                report = await feeding
            except asyncio.CancelledError:
                report = make_report(feeders, fed[0], fed[1], loop.time() - begin)
    context.term()
    return report
