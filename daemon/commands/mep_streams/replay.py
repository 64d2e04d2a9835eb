"""hltnode replay: sends events of files or of a simulation to one or more nodes, like the readout."""

import contextlib
import os
import signal
import socket
import sys
import termios
import tty
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
import zmq

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
    end_with_damage,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.mep_streams.replay_jobs import replay_here, replay_in_jobs
from hltnode.daemon.commands.mep_streams.replay_report import (
    describe_input,
    describe_outcomes,
    print_outcomes,
    say_what_is_special,
)
from hltnode.daemon.commands.mep_streams.replay_screen import ReplayScreen
from hltnode.daemon.commands.mep_streams.replay_setup import ReplayOptions, make_site, make_streams
from hltnode.daemon.commands.mep_streams.replay_udp import describe_sent, replay_to_udp, text_of_sent
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.common import log
from hltnode.daemon.common.endpoints import check_option
from hltnode.daemon.common.reachability import require_node
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.pacing import MAX_PAUSE_S, parse_rate
from hltnode.daemon.replay.site import make_identities


def replay(
    to: Annotated[
        list[str],
        typer.Option(
            "--to",
            metavar="ENDPOINT",
            help="Data endpoint of a node: tcp://HOST:PORT, ipc://PATH, or shm://PATH for the shared-memory socket "
            "of a node on this machine (shared_memory.socket); or udp://ADDRESS:PORT for datagrams. Repeatable.",
        ),
    ],
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILES|FOLDER",
            help="MDF (also gzip), Run-3 MEP or 2019 MEP files, or folders with them; for udp:// also captures of "
            "tcpdump (.pcap).",
        ),
    ] = None,
    control: Annotated[
        list[str] | None,
        typer.Option(
            "--control",
            metavar="ENDPOINT",
            help="Control endpoint of each --to; default: the port after the data port.",
        ),
    ] = None,
    rate: Annotated[
        str,
        typer.Option(
            "--rate",
            metavar="RATE",
            help="Events per second; recorded: by the times in the ODIN banks; greatest: as fast as the node accepts "
            "them.",
        ),
    ] = "greatest",
    max_pause: Annotated[
        float,
        typer.Option(
            "--max-pause",
            metavar="SECONDS",
            min=0.0,
            help="Longest pause between two MEPs with --rate recorded; longer recorded ones are shortened.",
        ),
    ] = MAX_PAUSE_S,
    loop: Annotated[
        bool,
        typer.Option(
            "--loop",
            help="Start again at the end of the input, until Ctrl-C or SIGTERM; not with --part or several runs.",
        ),
    ] = False,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Number of replays of the input.")] = 1,
    run: Annotated[
        int | None,
        typer.Option(
            "--run",
            min=1,
            max=0xFFFFFFFF,
            help="Run number of all events, also in the ODIN banks; default: the runs of the input.",
        ),
    ] = None,
    events_per_mep: Annotated[
        int,
        typer.Option("--events-per-mep", min=1, max=65535, help="Events per MEP; Run-3 MEP files keep their packing."),
    ] = 100,
    events_per_packet: Annotated[
        int, typer.Option("--events-per-packet", min=1, max=4096, help="Events of a datagram, with --to udp://.")
    ] = 16,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, help="Processes that share the sources, each with one connection.")
    ] = 1,
    sources: Annotated[
        int, typer.Option("--sources", min=0, help="Feeder connections that share the sources; 0: one per source.")
    ] = 1,
    part: Annotated[
        str | None,
        typer.Option("--part", metavar="I/N", help="Run only connection I of N; the others run in other processes."),
    ] = None,
    supervisor: Annotated[
        str | None,
        typer.Option(
            "--supervisor",
            metavar="ENDPOINT",
            help="Endpoint at which part 1 sends the assignments to the other parts.",
        ),
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option(
            "--memory",
            metavar="FILE",
            help="File in which the process that assigns MEPs to several nodes stores its assignments, so that it "
            "can be killed and restarted; default: a file for this run, name and nodes in ~/.local/state/hltnode. With "
            "several runs: FILE-RUN for each, and FILE-runs for the runs that are finished.",
        ),
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Simulated events instead of files.")] = False,
    n: Annotated[int, typer.Option("-n", "--events", min=1, help="Number of simulated events.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulation and of the faults.")] = 1,
    with_truth: Annotated[
        bool, typer.Option("--with-truth", help="Also send the truth banks of simulated events, which no readout has.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for a node that is not running yet; otherwise only three seconds.")
    ] = False,
    name: Annotated[str | None, typer.Option("--name", help="Name of this feeder; default: the host name.")] = None,
    fault: Annotated[
        str | None,
        typer.Option(
            "--fault",
            metavar="NAME=VALUE,...",
            help="Inject faults: probabilities per fragment of drop, duplicate, reorder, corrupt and delay, and "
            "kill-after (fragments of a connection after which this process kills itself).",
        ),
    ] = None,
    server_key: ServerKeyOption = None,
    key_file: KeyFileOption = None,
    encrypt_data: Annotated[
        bool, typer.Option("--encrypt-data", help="Use CURVE on the data connection as well (security.encrypt_data).")
    ] = False,
    segment_mib: Annotated[
        int,
        typer.Option(
            "--segment-mib",
            min=1,
            help="MiB of memory shared with nodes at shm://PATH; a MEP may take at most an eighth.",
        ),
    ] = DEFAULT_BYTES // MIB,
    chain: Annotated[
        str,
        typer.Option(
            "--chain", metavar="NAME", help="Chain for which the data are meant; a node of another chain refuses them."
        ),
    ] = DEFAULT_CHAIN,
    geometry: GeometryOption = None,
    json: JsonOption = None,
) -> None:
    """Send events to a node, MEP by MEP, and wait until it has acknowledged all MEPs.

    A node must answer within three seconds; with --wait it may start later. Replay waits for a lost node, names it
    every five seconds, and sends unacknowledged MEPs again. The space bar or SIGUSR1 pauses; the space bar or SIGCONT
    resumes. Replay first reads the files once to learn their sources; it skips and names a foreign file in a folder.

    Replay sends the events that it can read, and names the others at its end. Several runs in the input are sent one
    after the other; started again after an interruption, replay does not send finished runs a second time.

    The exit code is 0 only if every event was read, every fragment accepted and every MEP acknowledged, otherwise 1; 2
    without input or node; 130 after Ctrl-C; 143 after SIGTERM. With --loop, the first Ctrl-C or SIGTERM only ends the
    input, and replay waits for the acknowledgements.

    Example: hltnode replay minbias.mdf --to tcp://127.0.0.1:5555 --jobs 4 --events-per-mep 100 --loop
    """
    log.configure("warning", LogFormat.CONSOLE)
    # SIGUSR1 must not end the process before the replay handles it as a pause.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    with user_errors():
        require_writable(json, reads=inputs or ())
        if bool(inputs) == simulate:
            raise FeedError("expected either FILES or --simulate")
        if jobs > 1 and (sources != 1 or part is not None or supervisor is not None):
            raise FeedError(
                "--jobs: each process has one connection and one part; --sources, --part and --supervisor "
                "are for processes that you start one by one"
            )
        if loop and repeat != 1:
            raise FeedError("--loop and --repeat: expected one of them")
        if loop and part is not None:
            raise FeedError(
                "--loop and --part: processes that you start one by one do not end after the same MEP, and a MEP that "
                "some of them did not send is incomplete: expected --repeat, or --jobs instead of --part"
            )
        for option, endpoints in (("--to", to), ("--control", control or ())):
            for endpoint in endpoints:
                if not (option == "--to" and endpoint.startswith("udp://")):
                    check_option(option, endpoint)
        keys = load_client_keys(server_key, key_file)
        if encrypt_data and keys is None:
            raise FeedError("--encrypt-data: expected --server-key and --key-file")
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
            max_pause_s=max_pause,
            faults=None if fault is None else FaultPlan.parse(fault),
            segment_bytes=segment_mib * MIB,
        )
        if any(endpoint.startswith("udp://") for endpoint in to):
            if jobs > 1 or sources != 1:
                raise FeedError("--to udp://: expected one process, without --jobs and --sources")
            # Whole packets in each MEP of the input; MEP files keep their packing.
            whole = replace(options, events_per_mep=min(4096, 65535 // events_per_packet) * events_per_packet)
            sent = replay_to_udp(whole, events_per_packet)
            write_json(json, describe_sent(sent))
            echo(text_of_sent(sent))
            raise typer.Exit(0)
        streams = make_streams(options)
        say_what_is_special(streams)
        # Report errors of options before errors of the node.
        for stream in streams:
            make_identities(stream, options.name, options.connections, options.part, options.chain)
        site = make_site(options, [stream.run for stream in streams])
        if not wait:
            require_node(zmq.DEALER, [control for _, control in site.nodes], keys)
            if in_memory := [data for data, _ in site.nodes if data.startswith("shm://")]:
                require_node(zmq.DEALER, in_memory, keys)
        n_events = None if loop else sum(stream.n_events or 0 for stream in streams)
        with ReplayScreen(console, n_events) as screen:
            if jobs > 1:
                outcomes, ended_by = replay_in_jobs(options, streams, jobs, screen, _keyboard)
            else:
                outcomes, ended_by = replay_here(options, streams, screen, _keyboard)
        write_json(json, {**describe_outcomes(outcomes), "input": describe_input(streams)})
    print_outcomes(outcomes)
    if ended_by is not None:
        raise typer.Exit(128 + ended_by)
    end_with_damage(streams[0].damage)
    raise typer.Exit(0 if all(outcome.complete for outcome in outcomes) else 1)


@contextlib.contextmanager
def _keyboard() -> Iterator[int | None]:
    """The descriptor of the terminal in single-key mode; None without a terminal, or if another job has it."""
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
