"""hltnode demo: a node and several feeder processes on this machine, from simulated events to decisions and files."""

import contextlib
import json as json_module
import math
import signal
import subprocess
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import zmq
from rich.markup import escape
from rich.progress import Progress

from hltnode.daemon.commands import udp_demo
from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    BackendOption,
    ChainOption,
    JsonOption,
    console,
    require_writable,
    thread_count,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.demo_processes import (
    STOP_SECONDS,
    DemoError,
    child,
    free_ports,
    get,
    new_node_name,
    wait_until_running,
)
from hltnode.daemon.commands.guard import guarded_folder
from hltnode.daemon.commands.stream_demo import StreamPlan, run_stream_demo, show_stream
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.tool_command import tool_command
from hltnode.daemon.common.vocabulary import MepStage
from hltnode.daemon.event_building.accounting import closes
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.processing.offline.chain_tools import SampleRequest, SimulatedSample, Simulation, installed_tools
from hltnode.processing.selection.trigger_chain import installed_chain
from hltnode.protocol.transport.decisions import decode_decisions

STALL_SECONDS = 60.0
SHOWN_LINES = 8
QUIET_SECONDS = 3.0
MEP_LATENCY = "hltnode_mep_latency_seconds"
MEP_STAGE = "hltnode_mep_stage_seconds"
LATE = "hltnode_late_decisions_total"
END_TO_END = "hltnode_end_to_end_seconds"
KERNEL_SECONDS = 'hltnode_stage_seconds_sum{stage="kernels"}'
SHOWN_METRICS = (
    "hltnode_fragments_received_total",
    "hltnode_fragment_bytes_received_total",
    'hltnode_meps_closed_total{reason="complete"}',
    "hltnode_meps_acknowledged_total",
    "hltnode_batches_total",
    "hltnode_events_processed_total",
    "hltnode_events_accepted_total",
    "hltnode_decisions_published_total",
    "hltnode_decisions_sent_first_total",
    KERNEL_SECONDS,
    f"{END_TO_END}_sum",
    f"{END_TO_END}_count",
)


class Transport(StrEnum):
    """How the demo sends its events."""

    TCP = "tcp"
    UDP = "udp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Received events and decision messages, and the seconds from the first to the last message."""

    events: int
    decisions: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """Settings of a demo: a simulated sample of n events, repetitions, feeders, and the node.

    chain: the name of the chain that the node runs; rate: events per second, None for the greatest; output: the folder
    of the accepted events.
    """

    sample: SimulatedSample
    n: int
    chain: str
    feeders: int
    repeat: int
    rate: float | None
    backend: str
    output: Path
    uses_udp: bool = False


@tool_command("simulation")
def demo(
    tool: Simulation[Any],
    n: Annotated[int, typer.Option("-n", "--events", min=1, help="Number of simulated events.")] = 1000,
    feeders: Annotated[int, typer.Option("--feeders", min=1, max=16, help="Number of feeder processes.")] = 4,
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat", min=1, help="Number of times that the feeders send the events; a stream is sent once."
        ),
    ] = 5,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", min=0.1, metavar="HZ", help="Events per second; without it, as fast as the node accepts them."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulation.")] = 1,
    backend: BackendOption = "auto",
    transport: Annotated[
        Transport | None,
        typer.Option(
            "--transport",
            help="How the feeders send: tcp, or udp with one sender; default: udp for a chain whose boards use it.",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the accepted events.")] = Path(
        "demo-output"
    ),
    json: JsonOption = None,
    chain: ChainOption = DEFAULT_CHAIN,
) -> None:
    """Show the whole path of the data on this machine: feeders, TCP, event building, the trigger, files, metrics.

    A chain without events, such as km3net, shows a stream in short time slices while one of its sources is killed and
    started again: no window of time is lost or found twice.

    Example: hltnode demo --events 2000 --feeders 4; or, as a camera: hltnode demo --chain ccl --rate 200
    """
    with user_errors(), guarded_folder("hltnode-demo-") as scratch:
        require_writable(json)
        if installed_chain(chain).streaming is not None:
            if transport is Transport.UDP:
                raise ValueError("--transport udp: the demo sends a stream over TCP")
            sample = tool.sample(SampleRequest(seed=seed), tool.options())
            _stream_demo(scratch, StreamPlan(sample, n, chain, feeders, rate, backend, output), json)
        is_udp = installed_tools(chain).sends_datagrams if transport is None else transport is Transport.UDP
        plan = DemoPlan(
            sample=sample_of(tool, seed),
            n=n,
            chain=chain,
            feeders=1 if is_udp else feeders,
            repeat=repeat,
            rate=udp_demo.RATE if is_udp and rate is None else rate,
            backend=backend,
            output=output,
            uses_udp=is_udp,
        )
        try:
            result = run_demo(scratch, plan)
        except DemoError as error:
            console.print(f"[red]demo failed:[/red] {escape(str(error))}", highlight=False)
            raise typer.Exit(1) from error
        write_json(json, result)
        show(result)
    raise typer.Exit(0 if result["accounting_closes"] else 1)


def _stream_demo(scratch: Path, plan: StreamPlan, json: Path | None) -> NoReturn:
    try:
        result = run_stream_demo(scratch, plan)
    except DemoError as error:
        console.print(f"[red]demo failed:[/red] {escape(str(error))}", highlight=False)
        raise typer.Exit(1) from error
    write_json(json, result)
    show_stream(result)
    wrong = any(result[name] for name in ("lost", "doubled", "hits_lost", "hits_doubled"))
    raise typer.Exit(0 if result["accounting_closes"] and not wrong else 1)


def sample_of(tool: Simulation[Any], seed: int) -> SimulatedSample:
    """The events of the demo: MEPs as the readout writes them, or records of a chain without ODIN, which MEPs need."""
    meps = tool.sample(SampleRequest(seed=seed, file_format="mep"), tool.options())
    try:
        with contextlib.closing(meps.blocks(1, 1)) as made:
            next(made)
    except ValueError:
        # Another reason is told when the records are made.
        return tool.sample(SampleRequest(seed=seed), tool.options())
    return meps


def run_demo(scratch: Path, plan: DemoPlan) -> dict[str, Any]:
    """Run everything; returns the summary. Raises DemoError."""
    n, repeat = plan.n, plan.repeat
    meps = scratch / "events.mep"
    with Progress(console=console, transient=True) as progress:
        simulate_meps(meps, plan, progress)
        sources = sources_of(meps, plan)
        # A feeder sends at least one source, and a small image has only two.
        feeders = min(plan.feeders, len(sources))
        ports = free_ports(5)
        udp, rate = f"udp://127.0.0.1:{ports[4]}", plan.rate or udp_demo.RATE
        data, control, decisions = (f"tcp://127.0.0.1:{port}" for port in ports[:3])
        config = scratch / "node.toml"
        config.write_text(
            f"""
[node]
name = "{new_node_name()}"
[network]
data = "{data}"
control = "{control}"
decisions = "{decisions}"
max_frame_bytes = {8 << 20}
[builder]
min_feeders = {feeders}
max_mep_bytes = {16 << 20}
mep_timeout_ms = 5000
overtaken_after_ms = 5000
evict_after_ms = 5000
[pipeline]
backend = "{plan.backend}"
slot_bytes = {64 << 20}
max_events = 1024
{udp_demo.pipeline_keys(rate) if plan.uses_udp else ""}
[trigger]
chain = {json_module.dumps(plan.chain)}
[output]
directory = {json_module.dumps(str(plan.output.resolve()))}
{udp_demo.OUTPUT_KEYS if plan.uses_udp else ""}
[http]
port = {ports[3]}
{udp_demo.sections(udp, sources, rate) if plan.uses_udp else ""}
[log]
level = "warning"
format = "console"
"""
        )
        with contextlib.ExitStack() as stack:
            context = stack.enter_context(zmq.Context())
            subscriber = stack.enter_context(context.socket(zmq.SUB))
            subscriber.set(zmq.LINGER, 0)
            subscriber.set(zmq.RCVHWM, 0)
            subscriber.subscribe(b"")
            subscriber.connect(decisions)
            node = stack.enter_context(child("serve", "--config", str(config)))
            url = f"http://127.0.0.1:{ports[3]}"
            progress.console.print(f"The node starts; its pages are at {url}", highlight=False)
            wait_until_running(node, url)
            begin = time.monotonic()
            said = stack.enter_context((scratch / "feeders").open("w+"))
            senders = [
                stack.enter_context(
                    child(
                        "replay",
                        *(("--to", udp) if plan.uses_udp else
                          ("--to", data, "--control", control, "--part", f"{i}/{feeders}")),
                        str(meps), "--repeat", str(repeat), "--chain", plan.chain,
                        "--rate", "greatest" if plan.rate is None else str(plan.rate), stderr=said,
                    )
                )
                for i in range(1, feeders + 1)
            ]  # fmt: skip
            try:
                received = follow(progress, node, senders, subscriber, n * repeat, may_lose=plan.uses_udp)
            except DemoError:
                # Feeders report properties of their input; show the reports only after a failure.
                said.seek(0)
                progress.console.print(said.read(), markup=False, highlight=False)
                raise
            seconds = time.monotonic() - begin
            status = json_module.loads(get(f"{url}/status"))
            metrics = get(f"{url}/metrics")
            node.send_signal(signal.SIGTERM)
            exit_code = node.wait(STOP_SECONDS)
            if exit_code:
                raise DemoError(f"the node ended with exit code {exit_code}")
    accounts, files = status["accounting"], f"{status['node']}_{status['session']}_*.mdf"
    picked = pick_metrics(metrics)
    # The time starts with the first fragments, not with the first decision: few events make one batch, with all
    # decisions at once.
    decided_in = received.seconds + picked[f"{END_TO_END}_sum"] / max(1.0, picked[f"{END_TO_END}_count"])
    lost = n * repeat - received.events
    n_datagrams = len(sources) * -(-n * repeat // udp_demo.EVENTS_PER_PACKET)
    return {
        "transport": Transport.UDP if plan.uses_udp else Transport.TCP,
        "lost": lost,
        "latency_us": {f"p{p}": 1e6 * quantile_of(metrics, MEP_LATENCY, p / 100) for p in (50, 99)},
        "stages_us": stages_of(metrics),
        "late": int(samples_of(metrics)[LATE]),
        "events": received.events,
        "seconds": seconds,
        "events_per_second": received.events / decided_in,
        "feeders": feeders,
        "sources": status["sources"],
        "backend": status["backend"],
        "tck": status["tck"],
        "decisions": received.decisions,
        "accepted": status["events"]["accepted"],
        "accepted_by_line": status["events"]["accepted_by_line"],
        "files": {str(path): path.stat().st_size for path in sorted(plan.output.glob(files))},
        "metrics": picked,
        "accounting": accounts,
        "accounting_closes": closes(accounts)
        and status["events"]["processed"] == received.events
        # An event may only be lost with a datagram that did not arrive.
        and (lost == 0 or (plan.uses_udp and 0 <= samples_of(metrics)["hltnode_udp_datagrams_total"] < n_datagrams))
        # On a busy machine, feeders repeat MEPs without a timely acknowledgement; the node counts the repetitions and
        # does not build them.
        and accounts["fragments"]["received"] == accounts["fragments"]["built"] + accounts["fragments"]["duplicate"],
    }


def simulate_meps(path: Path, plan: DemoPlan, progress: Progress) -> None:
    """Write the simulated events."""
    bar = progress.add_task("simulating events", total=plan.n)
    with path.open("wb") as file, contextlib.closing(plan.sample.blocks(plan.n, thread_count(0))) as made:
        for size, block in made:
            file.write(block)
            progress.advance(bar, size)


def follow(
    progress: Progress,
    node: subprocess.Popen[bytes],
    senders: list[subprocess.Popen[bytes]],
    subscriber: zmq.Socket[bytes],
    expected: int,
    *,
    may_lose: bool = False,
) -> Decided:
    """Count decisions until all events are decided and all feeders have ended.

    may_lose: datagrams may be lost; then the last decision is the one after which none comes for `QUIET_SECONDS`.
    """
    bar = progress.add_task("events decided", total=expected)
    events = decisions = 0
    first = last_decision = time.monotonic()
    while events < expected or any(sender.poll() is None for sender in senders):
        if node.poll() is not None:
            raise DemoError(f"the node ended early with exit code {node.returncode}")
        failed = [sender.returncode for sender in senders if sender.poll() not in (None, 0)]
        if failed:
            raise DemoError(f"a feeder ended with exit code {failed[0]}")
        quiet_s = time.monotonic() - last_decision
        if may_lose and decisions and quiet_s > QUIET_SECONDS and all(each.poll() == 0 for each in senders):
            break
        if quiet_s > STALL_SECONDS:
            raise DemoError(f"no decision for {STALL_SECONDS:.0f} s after {events} of {expected} events")
        if subscriber.poll(100):
            found = decode_decisions(subscriber.recv())
            events += sum(decision.n_events for decision in found)
            decisions += len(found)
            last_decision = time.monotonic()
            if decisions == len(found):
                first = last_decision
            progress.update(bar, completed=events)
    return Decided(events=events, decisions=decisions, seconds=last_decision - first)


def sources_of(meps: Path, plan: DemoPlan) -> tuple[int, ...]:
    """The sources of the simulated events."""
    packing = Packing(events_per_mep=udp_demo.EVENTS_PER_PACKET, max_fragment_bytes=8 << 20)
    return meps_of_files([meps], installed_chain(plan.chain).readout, packing).sources


def quantile_of(metrics: str, histogram: str, fraction: float) -> float:
    """The quantile of a histogram of the node, interpolated within its bucket; 0 without values."""
    buckets = [
        (float(name.partition('le="')[2].partition('"')[0]), n)
        for name, n in samples_of(metrics).items()
        if name.startswith(f"{histogram}_bucket")
    ]
    rank = fraction * (buckets[-1][1] if buckets else 0.0)
    low, before = 0.0, 0.0
    for bound, n in buckets:
        if rank <= n and n > before:
            return low if math.isinf(bound) else low + (bound - low) * (rank - before) / (n - before)
        low, before = bound, n
    return 0.0


def stages_of(metrics: str) -> dict[str, float]:
    """Mean microseconds of a MEP in each stage. Decisions that leave first do not wait for `write`."""
    samples = samples_of(metrics)
    stages = {stage: f'{{stage="{stage}"}}' for stage in MepStage}
    return {
        stage: 1e6 * samples[f"{MEP_STAGE}_sum{label}"] / max(1.0, samples[f"{MEP_STAGE}_count{label}"])
        for stage, label in stages.items()
    }


def samples_of(text: str) -> dict[str, float]:
    """All samples of a metrics page, by name and labels."""
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in rows}


def pick_metrics(text: str) -> dict[str, float]:
    """The samples of SHOWN_METRICS in a metrics page."""
    samples = samples_of(text)
    return {name: samples[name] for name in SHOWN_METRICS if name in samples}


def time_text(seconds: float) -> str:
    """A time with two digits or more: 480 us, 2.4 ms, 24 ms."""
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.{1 if seconds < 0.01 else 0}f} ms"


def size_text(n_bytes: float) -> str:
    """A size with two digits or more: 103 bytes, 52 kB."""
    return f"{n_bytes:.0f} bytes" if n_bytes < 10_000 else f"{n_bytes / 1000:.0f} kB"


def show(result: dict[str, Any]) -> None:
    """Print the summary in lines of at most 80 columns; each path has its own line."""
    fragments, meps = result["accounting"]["fragments"], result["accounting"]["meps"]
    metrics = result["metrics"]
    events = max(1, result["events"])
    batches = max(1.0, metrics["hltnode_batches_total"])
    decisions = max(1.0, metrics[f"{END_TO_END}_count"])
    if result["transport"] == Transport.UDP:
        n_sent, per_packet = events + result["lost"], udp_demo.EVENTS_PER_PACKET
        sent = f"A sender sent {n_sent} events over UDP, in packets of {per_packet} events, as"
    else:
        sent = f"{result['feeders']} feeders sent {result['events']} bunch crossings (events) over TCP, in pieces, as"
    lines = [
        "",
        sent,
        f"{result['sources']} readout boards would. The node put them together, reconstructed them on",
        f"the {'GPU' if result['backend'] == 'cuda' else 'CPU'}, and decided which to keep.",
        "",
        f"  rate            {result['events_per_second']:.0f} events/s, from the first fragments to the last decision",
        f"  an event        {size_text(metrics['hltnode_fragment_bytes_received_total'] / events)}",
        f"  a packet        {events / max(1, meps['opened']):.0f} events in "
        f"{fragments['built'] / max(1, meps['opened']):.0f} fragments, one of each board (a MEP)",
        f"  reconstruction  {time_text(metrics[KERNEL_SECONDS] / batches)} for {events / batches:.0f} at a time",
        f"  a decision      {time_text(metrics[f'{END_TO_END}_sum'] / decisions)} after the last fragment",
        f"  kept            {result['accepted']} of {result['events']} events ({result['accepted'] / events:.1%})",
        f"  decided by      trigger configuration {result['tck']}",
        "",
    ]
    if result["transport"] == Transport.UDP:
        latency, stages = result["latency_us"], result["stages_us"]
        lines[-4:-3] = [
            f"  lost            {result['lost']} events, whose datagrams did not arrive",
            f"  latency         {latency['p50'] / 1e3:.1f} ms (median) and {latency['p99'] / 1e3:.1f} ms (p99), "
            "from the first datagram of a MEP",
            f"  late            {result['late']} of {result['decisions']} decisions, "
            f"after more than {time_text(udp_demo.DEADLINE_US * 1e-6)}",
            *(f"    {stage:<13} {time_text(stages[stage] * 1e-6)}" for stage in stages if stage != MepStage.WRITE),
        ]
    if selected := {line: count for line, count in result["accepted_by_line"].items() if count}:
        shown = sorted(selected.items(), key=lambda item: -item[1])
        lines += ["Selection lines that kept events:", ""]
        lines += [f"  {count:>7}  {line}" for line, count in shown[:SHOWN_LINES]]
        lines += [f"           and {len(shown) - SHOWN_LINES} more lines"] * (len(shown) > SHOWN_LINES)
        lines.append("")
    if result["files"]:
        lines += ["The kept events, for hltnode inspect, process or replay:", ""]
        lines += [f"  {path}" for path in result["files"]]
        lines.append("")
    if result["transport"] == Transport.UDP:
        lines += ["The decisions left before files and journal, so no file has the kept events.", ""]
    echo("\n".join(lines))
    if result["accounting_closes"]:
        echo(f"All {fragments['received']} fragments are accounted for: the accounting closes.")
    else:
        echo(f"The accounting DOES NOT CLOSE: {fragments}")
