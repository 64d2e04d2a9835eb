"""hltnode combine: joins the seeds of several nodes to windows."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from hltnode.daemon.commands.common import user_errors
from hltnode.daemon.common.endpoints import check_option
from hltnode.daemon.common.vocabulary import LogFormat, SilencePolicy


def combine(
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="ENDPOINT", help="Socket of the combiner (combiner.endpoint of the nodes)."),
    ] = "tcp://127.0.0.1:5571",
    nodes: Annotated[
        int, typer.Option("--nodes", min=1, max=256, help="Number of nodes that report each time slice.")
    ] = 1,
    min_nodes: Annotated[
        int, typer.Option("--min-nodes", min=1, max=256, help="Keep seeds that this number of nodes have.")
    ] = 1,
    distance: Annotated[
        int, typer.Option("--distance", min=0, max=1_000_000_000, help="Largest gap between these seeds in ns.")
    ] = 0,
    lines: Annotated[
        str, typer.Option("--lines", metavar="BITS", help="Lines that one node suffices for, as bits such as 0x5.")
    ] = "0",
    wait: Annotated[
        int, typer.Option("--wait", min=1, max=600_000, help="Decide this time after the first report, in ms.")
    ] = 1000,
    incomplete: Annotated[
        SilencePolicy,
        typer.Option("--incomplete", help="Seeds of slices that a node did not report: keep all, or drop as usual."),
    ] = SilencePolicy.KEEP,
    memory: Annotated[
        int,
        typer.Option(
            "--memory",
            min=1,
            max=65_536,
            help="Memory of seeds and windows in MiB. Messages that wait may take as much again.",
        ),
    ] = 256,
    http_port: Annotated[
        int | None, typer.Option("--http-port", min=1, max=65_535, help="Port of /metrics; off if not given.")
    ] = None,
    http_host: Annotated[str, typer.Option("--http-host", help="Address of /metrics.")] = "127.0.0.1",
    secret_key: Annotated[
        Path | None, typer.Option("--secret-key", metavar="FILE", help="Own secret key (NAME.key_secret), for CURVE.")
    ] = None,
    nodes_dir: Annotated[
        Path | None, typer.Option("--nodes-dir", metavar="DIR", help="Public keys of the nodes.")
    ] = None,
    operators_dir: Annotated[
        Path | None, typer.Option("--operators-dir", metavar="DIR", help="Public keys of operators.")
    ] = None,
    log_format: Annotated[LogFormat, typer.Option("--log-format", help="console or json.")] = LogFormat.CONSOLE,
) -> None:
    """Join the seeds of several nodes to windows, until SIGTERM or SIGINT.

    Nodes of a streaming chain with combiner.endpoint send their windows as seeds, and write what the combiner confirms.
    `hltnode window` asks it for external windows.

    Example: hltnode combine --nodes 2 --min-nodes 2 --distance 1000
    """
    with user_errors():
        from prometheus_client import CollectorRegistry, start_http_server

        from hltnode.daemon.combiner.combiner import Combiner, CombinerAccess
        from hltnode.daemon.combiner.combiner_metrics import CombinerCollector
        from hltnode.daemon.combiner.seed_joiner import JoinRules
        from hltnode.daemon.common import log

        if min_nodes > nodes:
            raise ValueError(f"--min-nodes {min_nodes}: expected at most --nodes, which is {nodes}")
        rules = JoinRules(
            nodes=nodes,
            min_nodes=min_nodes,
            distance_ns=distance,
            lines=_bits(lines),
            wait_ns=wait * 1_000_000,
            keep_incomplete=incomplete is SilencePolicy.KEEP,
            max_bytes=memory << 20,
        )
        endpoint = check_option("--listen", listen)
        log.configure("info", log_format)
        combiner = Combiner(rules, CombinerAccess.load(secret_key, nodes_dir, operators_dir))
        stop: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda signum, _frame: stop.append(signum))
        combiner.open(endpoint)
        try:
            if http_port is not None:
                registry = CollectorRegistry()
                registry.register(CombinerCollector(combiner))
                start_http_server(http_port, http_host, registry)
            while not stop:
                combiner.turn()
        finally:
            combiner.close()
            log.get_logger("combiner").info("combiner_stopped")
            log.drain()


def _bits(text: str) -> int:
    try:
        found = int(text, 0)
    except ValueError:
        found = -1
    if not 0 <= found <= 0xFFFF_FFFF:
        raise ValueError(f"--lines {text}: expected 32 bits, such as 0x5 for the lines 0 and 2")
    return found
