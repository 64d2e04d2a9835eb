"""hltnode farm: a model of many nodes, its measurements, and the size of a farm."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    BackendOption,
    ChainOption,
    DeviceOption,
    GeometryOption,
    JsonOption,
    SequenceOption,
    ThreadsOption,
    TriggerOption,
    console,
    counted,
    require_files,
    require_packages,
    require_writable,
    thread_count,
    user_errors,
    write_json,
    write_text,
)
from hltnode.daemon.commands.farm.up import up
from hltnode.daemon.commands.result_files import require_new, result_file
from hltnode.daemon.commands.terminal import echo

if TYPE_CHECKING:
    from hltnode.daemon.farm_model.sizing import Site

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Plan and try a farm: one on this machine, a model with the policies of a node, times measured here, a size.",
    no_args_is_help=True,
)
app.command()(up)


@app.command()
def model(
    farm: Annotated[Path, typer.Argument(metavar="FARM.toml", help="Description of the farm.")],
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="S", help="Time with beam; that of the description if not given."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of all random numbers; that of the description if not given.")
    ] = None,
    runs: Annotated[
        int,
        typer.Option("--runs", min=1, max=1000, help="Independent runs of each farm, whose numbers are joined."),
    ] = 1,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", min=0, help="Processes that run farms; 0: one per core. The numbers do not depend on it."
        ),
    ] = 1,
    needed: Annotated[
        bool, typer.Option("--nodes-needed", help="Also search the smallest number of nodes without loss.")
    ] = False,
    dead: Annotated[bool, typer.Option("--dead-node", help="Also run with a node that dies.")] = False,
    policies: Annotated[bool, typer.Option("--policies", help="Also run with each policy of assignment.")] = False,
    placements: Annotated[
        bool, typer.Option("--placements", help="Also print the bandwidths of servers with 1 to 8 back ends.")
    ] = False,
    faults: Annotated[
        bool,
        typer.Option(
            "--faults",
            help="Also run with a dead rack, a restart of the switch, slow nodes, a rolling update and a full disk.",
        ),
    ] = False,
    loads: Annotated[
        bool, typer.Option("--loads", help="Also run with bursts, random triggers, the decay of a fill, occupancies.")
    ] = False,
    back_ends: Annotated[
        bool, typer.Option("--back-ends", help="Also run with 1, 2, 4 and 8 back ends in a node, as many in all.")
    ] = False,
    sweep: Annotated[
        list[str] | None,
        typer.Option("--sweep", metavar="KEY=A,B,C", help="Also run with each of these values; repeatable."),
    ] = None,
    json: JsonOption = None,
    report: Annotated[
        Path | None, result_file("--report", metavar="FILE", help="Also write the result as an HTML page.")
    ] = None,
) -> None:
    """Run a model of a farm: losses, latencies, buffers.

    The event builder, the credits and the supervisor of the model are those of a node. A farm that cannot work is
    refused with the number that is missing.

    Example: hltnode farm model examples/farm-lhcb.toml --dead-node --json f.json
    """
    with user_errors():
        require_files(farm)
        require_writable(json, report, reads=[farm])
        if report is not None:
            require_packages("--report", "matplotlib")
        # Local imports: `--help` needs no model.
        from hltnode.daemon.commands.farm.model_runs import RunsOfProcesses
        from hltnode.daemon.farm_model.description import load_description
        from hltnode.daemon.farm_model.questions import Questions, answers
        from hltnode.daemon.farm_model.tables import tables_of

        description = load_description(farm)
        for key, value in (("seconds", seconds), ("seed", seed)):
            if value is not None:
                description = description.with_value(key, value)
        asked = Questions(
            nodes_needed=needed,
            dead_node=dead,
            policies=policies,
            placements=placements,
            groups=tuple(
                name for name, is_asked in (("faults", faults), ("loads", loads), ("back_ends", back_ends)) if is_asked
            ),
            sweep=tuple(sweep or ()),
        )
        with console.status("running") as status:
            model_runs = RunsOfProcesses(runs, thread_count(jobs), lambda text: status.update(f"running: {text}"))
            result = answers(description, asked, model_runs)
        tables = tables_of(result)
        if report is not None:
            from hltnode.daemon.commands.farm.model_page import model_page

            write_text(report, model_page(farm.name, result, tables))
        write_json(json, result)
    echo("\n\n".join(table.text() for table in tables))
    if broken := result["broken_identities"]:
        echo("The identities of the model are broken:\n" + "\n".join(broken))
        raise typer.Exit(1)


@app.command()
def measure(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="MDF or MEP files.")],
    out: Annotated[Path, result_file("--out", metavar="FILE", help="File of the measurement (JSON).")],
    batches: Annotated[int, typer.Option("--batches", min=10, max=100_000, help="Batches of each size.")] = 50,
    sizes: Annotated[str, typer.Option("--sizes", metavar="N,N", help="Events of a batch, ascending.")] = "16,64,256",
    chain: ChainOption = DEFAULT_CHAIN,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    geometry: GeometryOption = None,
    backend: BackendOption = "auto",
    threads: ThreadsOption = 0,
    device: DeviceOption = 0,
) -> None:
    """Measure the times of batches of a chain on this machine, for the model.

    For each batch size, all events are measured, and apart from them the third of the smallest, middle and largest
    ones. One batch runs at a time.

    Example: hltnode farm measure minbias.mdf --out lhcb.json
    """
    from hltnode.daemon.commands.events.event_processor import Setup
    from hltnode.daemon.commands.farm.measuring import measured, parse_sizes
    from hltnode.processing.framework.event_files import DamageLog

    damage = DamageLog()
    with user_errors():
        require_files(*files)
        require_writable(out, reads=[*files, trigger])
        setup = Setup(
            chain=chain,
            trigger=trigger,
            sequence=sequence,
            geometry=geometry,
            backend=backend,
            threads=thread_count(threads),
            device=device,
            encoding="auto",
        )
        with console.status("measuring") as status:
            found = measured(
                files, setup, parse_sizes(sizes), batches, lambda text: status.update(f"measuring: {text}"), damage
            )
        write_json(out, found.as_json())
    for point in found.points:
        median = point.seconds[len(point.seconds) // 2]
        echo(
            f"{point.occupancy:7} {point.events:6} events of {point.event_bytes / 1e3:.1f} kB: "
            f"median {median * 1e3:.3f} ms, {point.events / median:.0f} events/s"
        )
    if damage.n:
        echo("\n".join([f"left out, {counted(damage.n, 'damaged place')}:", *damage.first]))
        raise typer.Exit(1)


@app.command()
def size(
    rate: Annotated[str, typer.Option("--rate", metavar="RATE", help="Rate of events, such as 1MHz or 20kHz.")],
    event_bytes: Annotated[str, typer.Option("--event-bytes", metavar="SIZE", help="Size of an event, such as 60k.")],
    sources: Annotated[int, typer.Option("--sources", min=1, max=65_535, help="Number of readout sources.")],
    measurement: Annotated[
        Path | None,
        typer.Option("--measurement", metavar="FILE", help="File of `hltnode farm measure` for the chain."),
    ] = None,
    node_rate: Annotated[
        str | None, typer.Option("--node-rate", metavar="RATE", help="Rate of one node, instead of a measurement.")
    ] = None,
    accepted: Annotated[
        float | None,
        typer.Option(
            "--accepted", min=0, max=1, help="Part of the events that is written; of the measurement if not given."
        ),
    ] = None,
    chain: ChainOption = DEFAULT_CHAIN,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory", metavar="DIR", help="Write farm.toml and node.toml into this folder, which has neither."
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Compute the size of a farm: nodes, memory, network, disk, and configuration files to start from.

    Without --measurement and --node-rate, this machine is measured for some seconds, with simulated events of --chain.

    Examples: hltnode farm size --rate 1MHz --event-bytes 60k --sources 36 --chain lhcb;
    hltnode farm size --rate 1MHz --event-bytes 60k --sources 36 --node-rate 50kHz --accepted 0.05
    """
    from hltnode.daemon.farm_model.sizing import Site, parse_quantity, sized

    measured_text = ""
    with user_errors():
        require_files(measurement)
        require_writable(json, reads=[measurement])
        if measurement is not None and node_rate is not None:
            raise ValueError("expected --measurement, a file of `hltnode farm measure`, or --node-rate, not both")
        site = Site(
            events_per_second=parse_quantity(rate, "--rate"),
            event_bytes=parse_quantity(event_bytes, "--event-bytes"),
            sources=sources,
            chain=chain,
            measurement=measurement,
            node_events_per_second=0.0 if node_rate is None else parse_quantity(node_rate, "--node-rate"),
            accepted=accepted,
        )
        if measurement is None and node_rate is None:
            site, measured_text = _measured_site(site)
        result, texts = sized(site)
        if directory is not None:
            _write_files(directory, texts)
        write_json(json, result)
    echo(measured_text + _size_text(result))
    if directory is None:
        for name, text in texts.items():
            echo(f"\n# {name}\n{text.rstrip()}")
    else:
        echo(f"written: {', '.join(str(directory / name) for name in texts)}")


def _measured_site(site: "Site") -> "tuple[Site, str]":
    """The site with a rate that is measured here, and a line about the measurement."""
    from hltnode.daemon.commands.farm.measuring import measured_at_once

    found = measured_at_once(site.chain)
    point = found.largest("all")
    line = (
        f"measured  {point.events_per_second / 1e3:.4g} kHz on this machine ({found.back_end}, "
        f"{counted(found.threads, 'thread')}), with simulated events of {point.event_bytes / 1e3:.3g} kB, of which "
        f"{found.accepted:.3g} were accepted\n"
    )
    accepted = found.accepted if site.accepted is None else site.accepted
    return replace(site, node_events_per_second=point.events_per_second, accepted=accepted), line


def _write_files(directory: Path, texts: dict[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    require_new(*(directory / name for name in texts))
    for name, text in texts.items():
        write_text(directory / name, text)


def _size_text(result: dict[str, Any]) -> str:
    return "\n".join(
        (
            f"nodes     {result['nodes']}, of {result['node_events_per_second'] / 1e3:.4g} kHz each (limit: "
            f"{result['limit']}), with a reserve of {result['reserve']:.0%}; without it {result['nodes_at_least']}",
            f"MEPs      {result['events_per_mep']} events, {result['mep_bytes'] / 1e6:.3g} MB, "
            f"{result['meps_per_second']:.4g} each second",
            f"memory    {result['node_memory_bytes'] / 1e9:.3g} GB of slots in each node, "
            f"{result['buffer_bytes'] / 1e9:.3g} GB in the feeders for {result['buffer_seconds']:.3g} s",
            f"network   {result['node_gbps']:.3g} Gb/s into each node, "
            f"{result['source_gbps']:.3g} Gb/s from each source",
            f"disk      {result['node_disk_bytes_per_second'] / 1e6:.4g} MB/s in each node, "
            f"{result['bytes_per_day'] / 1e12:.3g} TB a day of all nodes",
        )
    )
