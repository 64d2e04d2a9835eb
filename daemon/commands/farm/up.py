"""hltnode farm up: a whole farm on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    BackendOption,
    ChainOption,
    JsonOption,
    console,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.terminal import echo


def up(
    nodes: Annotated[int, typer.Option("--nodes", min=1, max=64, help="Number of nodes.")] = 3,
    chain: ChainOption = DEFAULT_CHAIN,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", min=0.1, metavar="HZ", help="Events per second; without it, as fast as the nodes accept them."
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", min=0.1, help="Time with events, from the first one; without it, until Ctrl-C or SIGTERM."
        ),
    ] = None,
    n: Annotated[
        int, typer.Option("-n", "--events", min=4, help="Number of simulated events, which the feeder repeats.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulation.")] = 1,
    backend: BackendOption = "auto",
    monitoring: Annotated[
        bool,
        typer.Option("--monitoring/--no-monitoring", help="Start Prometheus and Alertmanager, where installed."),
    ] = True,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            metavar="DIR",
            help="New or empty folder for all files, which stay; without it, a temporary one that is removed.",
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Run a whole farm on this machine: nodes, the supervising feeder, the farm page, Prometheus and Alertmanager.

    The feeder repeats simulated events of the chain. A node that ends is started again, at most six times in a row,
    after pauses that grow. The first Ctrl-C or SIGTERM ends the input, waits for the acknowledgements and prints the
    accounting of the farm; a second one ends at once. No process and no temporary folder stays behind, also after
    SIGKILL of this command.

    The exit code is 0 only if the accounting closes.

    Example: hltnode farm up --nodes 3 --chain ccl --rate 200 --seconds 20
    """
    with user_errors():
        require_writable(json)
        if directory is not None and directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise ValueError(f"--directory {directory}: expected a new or an empty folder")
        # Local imports: `--help` needs no chain.
        from hltnode.daemon.commands.farm.local.accounts import text_of
        from hltnode.daemon.commands.farm.local.processes import EndedBySignalError, FarmFailedError, end_signals
        from hltnode.daemon.commands.farm.local.running import FarmPlan, run_local_farm
        from hltnode.daemon.commands.tool_command import tool_of
        from hltnode.processing.offline.chain_tools import SampleRequest, installed_tools

        tool = tool_of(installed_tools(chain), chain, "simulation")
        plan = FarmPlan(
            sample=tool.sample(SampleRequest(seed=seed), tool.options()),
            n=n,
            nodes=nodes,
            chain=chain,
            backend=backend,
            rate=rate,
            seconds=seconds,
            directory=directory,
            monitoring=monitoring,
        )

        def say(text: str) -> None:
            console.print(text, markup=False, highlight=False, soft_wrap=True)

        try:
            with end_signals() as signals, console.status("starting") as status:
                result = run_local_farm(plan, signals, say, status.update)
        except FarmFailedError as error:
            say(f"the farm failed: {error}")
            raise typer.Exit(1) from error
        except EndedBySignalError as error:
            raise typer.Exit(128 + error.number) from error
        write_json(json, result)
    echo(text_of(result))
    raise typer.Exit(0 if result["accounting_closes"] else 1)
