"""hltnode feed: feeders of one or more nodes, one connection each."""

import asyncio
import contextlib
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer
import uvloop
import zmq.asyncio
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    GeometryOption,
    JsonOption,
    KeyFileOption,
    ServerKeyOption,
    console,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.feeder.assignment_memory import AssignmentMemory, AssignmentMemoryError
from hltnode.daemon.feeder.fault_injection import FaultInjector, FaultPlan
from hltnode.daemon.feeder.feeder import Feeder, FeederIdentity, FeederRefusedError
from hltnode.daemon.feeder.follower import Follower
from hltnode.daemon.feeder.made_ahead import made_ahead
from hltnode.daemon.feeder.mep_source import FeedError, FeedMep, MepStream, Packing, meps_of_files, meps_of_simulation
from hltnode.daemon.feeder.multi_node import distribute_meps
from hltnode.daemon.feeder.nodes import NodeGroup, Nodes
from hltnode.daemon.feeder.single_node import FeedReport, feed_meps, make_report, share
from hltnode.daemon.feeder.sockets import FeederKeys, FeederSockets
from hltnode.daemon.feeder.supervisor import Supervisor
from hltnode.daemon.security.curve_keys import load_client_keys
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.processing.lhcb.simulation.blocks import SimulationRequest, events_of
from hltnode.processing.lhcb.simulation.velo_generator import DEFAULT_RUN
from hltnode.processing.selection.trigger_chain import installed_chain
from hltnode.protocol.transport.messages import MAX_NAME_LENGTH, is_name

# The default of the node (network.max_frame_bytes less the transport header).
MAX_FRAGMENT_BYTES = 16 * 1024 * 1024 - 40

# Ranges of MEP ids in one line.
SHOWN_RANGES = 20


def feed(
    to: Annotated[
        list[str],
        typer.Option("--to", metavar="ENDPOINT", help="Data endpoint of a node, tcp://HOST:PORT; repeatable."),
    ],
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILES", help="More input files.")] = None,
    control: Annotated[
        list[str] | None,
        typer.Option("--control", metavar="ENDPOINT", help="Control endpoint of each --to; default: the next port."),
    ] = None,
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
    inputs: Annotated[
        list[Path] | None, typer.Option("--input", metavar="FILES", help="MDF, MEP or 2019 MEP files.")
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Feed simulated events of LHCb.")] = False,
    n: Annotated[int, typer.Option("-n", "--events", min=1, help="Number of simulated events.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulation and of the faults.")] = 1,
    events_per_mep: Annotated[
        int, typer.Option("--events-per-mep", min=1, max=65535, help="Packing; Run-3 MEP files keep theirs.")
    ] = 100,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, help="Largest number of events per second.")
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Number of times that the input is fed.")] = 1,
    run: Annotated[int | None, typer.Option("--run", min=1, help="Run number; default: that of the input.")] = None,
    with_truth: Annotated[
        bool, typer.Option("--with-truth", help="Send truth banks of simulated events, too; no readout has them.")
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
    chain: ChainOption = DEFAULT_CHAIN,
    geometry: GeometryOption = None,
    json: JsonOption = None,
) -> None:
    """Send events to a node, MEP by MEP, and wait until it has acknowledged all of them.

    A lost node or connection is waited for, and what was not acknowledged is sent again. The exit code is 0 when the
    node has accepted and acknowledged everything, 1 when it has not, 130 after Ctrl-C and 143 after SIGTERM.

    Example: hltnode feed --to tcp://127.0.0.1:5555 --sources 4 --input minbias.mdf --events-per-mep 100 --repeat 10
    """
    log.configure("warning", LogFormat.CONSOLE)
    paths = [*(inputs or []), *(files or [])]
    with user_errors():
        require_writable(json)
        faults = None if fault is None else FaultPlan.parse(fault)
        if bool(paths) == simulate:
            raise FeedError("either --input FILES or --simulate is expected")
        packing = Packing(
            events_per_mep=events_per_mep,
            max_fragment_bytes=MAX_FRAGMENT_BYTES,
            repeat=repeat,
            run=run,
            with_truth=with_truth,
        )
        if simulate:
            request = SimulationRequest(seed=seed, run=run or DEFAULT_RUN, geometry=geometry)
            stream = meps_of_simulation(lambda: events_of(request, n), LHCB_READOUT, packing)
        else:
            stream = meps_of_files(paths, installed_chain(chain).readout, packing)
        keys = load_client_keys(server_key, key_file)
        if encrypt_data and keys is None:
            raise FeedError("--encrypt-data: --server-key and --key-file are expected")
        site = Site.of(to, control, supervisor, part, memory, FeederKeys(keys, encrypt_data))
        identities = make_identities(stream, name or socket.gethostname(), sources, part)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            report, ended_by = runner.run(run_feeders(stream, identities, site, rate, faults=faults, seed=seed))
        write_json(json, asdict(report))
    print_report(report)
    if ended_by is not None:
        raise typer.Exit(128 + ended_by)
    raise typer.Exit(0 if report.complete and not report.unconfirmed else 1)


def print_report(report: FeedReport) -> None:
    """What was fed, and what became of it."""
    typer.echo(
        f"{report.meps} MEPs, {report.events} events in {report.seconds:.2f} s: "
        f"{report.events / report.seconds:.0f} events/s, {report.fragments} fragments ({report.resent} sent again), "
        f"{report.unacknowledged} MEPs not acknowledged, {report.reassigned} assigned to another node"
    )
    if report.injected:
        typer.echo("injected: " + ", ".join(f"{count} {name}" for name, count in report.injected.items()))
    for node, ranges in report.unconfirmed.items():
        typer.echo(
            f"revoked from {node}, which did not return: MEPs {shown(ranges)}; its files may hold them a second time"
        )
    for reason, count in report.refused.items():
        typer.echo(f"not accepted: {count.fragments} fragments of {count.meps} MEPs, {reason}")
    if report.unacknowledged:
        typer.echo(f"not acknowledged: MEPs {shown(report.unacknowledged_meps)}")
    if report.error:
        console.print(f"[red]error:[/red] {escape(report.error)}", highlight=False, soft_wrap=True)


def shown(ranges: Sequence[tuple[int, int]]) -> str:
    """The first ones of many ranges of MEP ids."""
    text = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges[:SHOWN_RANGES])
    return text if len(ranges) <= SHOWN_RANGES else f"{text} and {len(ranges) - SHOWN_RANGES} more ranges"


def control_endpoint(data: str) -> str:
    """The default control endpoint of a data endpoint: the next port. Raises FeedError where there is no port."""
    match = re.fullmatch(r"(tcp://.+:)(\d+)", data)
    if match is None:
        raise FeedError(f"{data}: --control is needed, because the next port cannot be derived")
    return f"{match[1]}{int(match[2]) + 1}"


def make_identities(stream: MepStream, name: str, connections: int, part: str | None) -> list[FeederIdentity]:
    """The identities of the connections of this process. Raises FeedError for a part that does not exist."""
    shares = share(stream.sources, connections)
    mine = range(len(shares))
    if part is not None:
        match = re.fullmatch(r"(\d+)/(\d+)", part)
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= len(stream.sources):
            raise FeedError(f"--part {part}: expected I/N with 1 <= I <= N <= {len(stream.sources)} sources")
        shares = share(stream.sources, int(match[2]))
        mine = range(int(match[1]) - 1, int(match[1]))
    longest = f"{name}:{len(shares)}/{len(shares)}"
    if not is_name(longest):
        raise FeedError(
            f"--name: {longest[:80]!r} is no name of a feeder: up to {MAX_NAME_LENGTH} letters, digits and . _ : / -"
        )
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


@dataclass(frozen=True, slots=True)
class Site:
    """Endpoints of the nodes, and the role of this process among those that feed them."""

    nodes: tuple[tuple[str, str], ...]
    """Data and control endpoint of each node."""
    supervisor: str | None
    follows: bool
    """True for a process that follows the supervisor in another one."""
    memory: Path | None
    """Where the supervisor remembers its assignments; None for the default."""
    keys: FeederKeys

    @classmethod
    def of(
        cls,
        data: list[str],
        control: list[str] | None,
        supervisor: str | None,
        part: str | None,
        memory: Path | None,
        keys: FeederKeys,
    ) -> "Site":
        """From the command line. Raises FeedError for options that do not fit together."""
        control = control or [control_endpoint(endpoint) for endpoint in data]
        if len(control) != len(data):
            raise FeedError(f"--control: expected once for each --to, {len(data)} times")
        if len(set(data)) != len(data):
            raise FeedError("--to: expected each node once")
        if len(data) > 1 and part is not None and supervisor is None:
            raise FeedError("--supervisor is needed: several processes must use the same assignments of MEPs to nodes")
        follows = supervisor is not None and part is not None and not part.startswith("1/")
        if memory is not None and (follows or len(data) == 1):
            raise FeedError("--memory: expected only for the process that assigns MEPs to several nodes")
        return cls(tuple(zip(data, control, strict=True)), supervisor, follows, memory, keys)

    def connect(
        self, context: zmq.asyncio.Context, identities: list[FeederIdentity], faults: FaultPlan | None, seed: int
    ) -> list[list[Feeder]]:
        """The feeders of each node. Each has its own sequence of faults, independent of the others and of their
        distribution over processes."""
        by_node = [
            [
                Feeder(
                    FeederSockets(context, data, control, self.keys),
                    identity,
                    faults=None if faults is None else FaultInjector(faults, f"{seed}/{number}/{identity.sources[0]}"),
                )
                for identity in identities
            ]
            for number, (data, control) in enumerate(self.nodes)
        ]
        for feeders in by_node:
            for feeder in feeders:
                feeder.node_takes_others = partial(_takes_one, feeders)
        return by_node

    def share_nodes(self, feeders: list[list[Feeder]]) -> Nodes | None:
        """What the feeders of several nodes have in common; None for one node without a supervisor."""
        if len(self.nodes) == 1 and self.supervisor is None:
            return None
        return Nodes([NodeGroup(data, mine) for (data, _), mine in zip(self.nodes, feeders, strict=True)])

    def supervise(self, nodes: Nodes, memory: AssignmentMemory, context: zmq.asyncio.Context) -> Supervisor:
        """The supervisor of these nodes. Raises FeedError: its endpoint cannot be bound."""
        try:
            return Supervisor(nodes, memory, context, self.supervisor)
        except zmq.ZMQError as error:
            raise FeedError(f"--supervisor {self.supervisor}: {error.strerror}") from error

    def open_memory(self, identity: FeederIdentity) -> AssignmentMemory | None:
        """What an earlier process of this one's role has decided; None if others decide, or there is nothing to decide.

        Raises AssignmentMemoryError.
        """
        if self.follows or (len(self.nodes) == 1 and self.supervisor is None):
            return None
        endpoints = [data for data, _ in self.nodes]
        path = self.memory
        if path is None and len(endpoints) > 1:
            path = default_memory(identity, endpoints)
        memory = AssignmentMemory(path, run=identity.run, nodes=endpoints)
        if memory.continues:
            console.print(
                f"continues run {identity.run} after MEP {memory.next_mep - 1}, as {path} says",
                highlight=False,
                soft_wrap=True,
            )
        return memory


def default_memory(identity: FeederIdentity, endpoints: Sequence[str]) -> Path:
    """A file for the assignments of this run, name and nodes, below XDG_STATE_HOME. Raises AssignmentMemoryError."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "hltnode"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AssignmentMemoryError(f"{folder}: {error.strerror}; give --memory FILE") from error
    digest = sha256(" ".join([identity.name, *endpoints]).encode()).hexdigest()[:12]
    return folder / f"feed-{identity.run}-{digest}.sqlite"


def _takes_one(feeders: Sequence[Feeder]) -> bool:
    return any(feeder.is_connected for feeder in feeders)


async def run_feeders(
    stream: MepStream,
    identities: list[FeederIdentity],
    site: Site,
    rate: float | None,
    *,
    faults: FaultPlan | None,
    seed: int,
) -> tuple[FeedReport, int | None]:
    """Feed until everything is acknowledged, or the node refuses, or a signal is received.

    Returns the report, which includes what is left then, and the number of the signal.
    """
    loop = asyncio.get_running_loop()
    columns = (SpinnerColumn(), TextColumn("{task.completed} events fed"), TimeElapsedColumn())
    fed = [0, 0]
    ended_by: list[int] = []
    memory = site.open_memory(identities[0])
    with zmq.asyncio.Context() as context, Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=None)

        async def counted() -> AsyncIterator[FeedMep]:
            async with contextlib.aclosing(made_ahead(stream)) as meps:
                async for mep in meps:
                    yield mep
                    fed[0] += 1
                    fed[1] += mep.n_events
                    progress.update(bar, completed=fed[1])

        begin = loop.time()
        async with contextlib.AsyncExitStack() as stack:
            by_node = site.connect(context, identities, faults, seed)
            feeders = [await stack.enter_async_context(feeder) for mine in by_node for feeder in mine]
            nodes = site.share_nodes(by_node)
            if nodes is None:
                feeding = asyncio.create_task(feed_meps(counted(), feeders, rate=rate))
            else:
                # Before anything here waits: the first hello contains the session that is remembered.
                assigner: Supervisor | Follower
                if memory is not None:
                    assigner = site.supervise(nodes, memory, context)
                else:
                    assert site.supervisor is not None
                    assigner = Follower(nodes, context, site.supervisor)
                stack.enter_context(contextlib.closing(assigner))
                feeding = asyncio.create_task(distribute_meps(counted(), nodes, assigner, rate=rate))

            def end(number: int) -> None:
                ended_by.append(number)
                feeding.cancel()

            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, end, number)
            error = ""
            try:
                report = await feeding
                if memory is not None and report.complete and not report.unconfirmed:
                    memory.finish()
                return report, None
            except (FeederRefusedError, AssignmentMemoryError) as refusal:
                error = str(refusal)
            except asyncio.CancelledError:
                if not ended_by:
                    raise
                error = f"ended by {signal.Signals(ended_by[0]).name} before everything was fed and acknowledged"
            report = make_report(
                feeders,
                fed[0],
                fed[1],
                loop.time() - begin,
                reassigned=0 if nodes is None else nodes.reassigned,
                unconfirmed={} if nodes is None else nodes.unconfirmed(reachable=False),
                error=error,
            )
    return report, ended_by[0] if ended_by else None
