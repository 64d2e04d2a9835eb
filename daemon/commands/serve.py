"""hltnode serve: the node."""

import asyncio
import os
import signal
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop
import zmq

from hltnode.daemon.commands.common import (
    JsonOption,
    console,
    require_writable,
    thread_count,
    user_errors,
    write_json,
)
from hltnode.daemon.common import log
from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.node.malloc_tuning import keep_heap
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.selection.trigger_chain import installed_chain


def serve(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="Configuration of the node (TOML).")],
    json: JsonOption = None,
) -> None:
    """Run a node until SIGTERM or SIGINT, which drain it; a second one stops it at once. SIGHUP reloads the
    configuration.

    The JSON result is the last status.

    Example: hltnode serve --config node.toml
    """
    with user_errors():
        require_writable(json)
        settings = load_config(config)
        log.configure(settings.log.level, settings.log.format)
        keep_heap()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                exit_code, status, hangs = runner.run(serve_node(settings, config))
            except zmq.ZMQError as error:
                console.print(f"[red]error:[/red] network: {error}", highlight=False)
                raise typer.Exit(1) from error
        write_json(json, status)
    if hangs:
        # Python and the back end would wait at their end for a thread that does not return from its kernel.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)
    raise typer.Exit(exit_code)


async def serve_node(config: NodeConfig, config_file: Path) -> tuple[int, dict[str, Any], bool]:
    """Make the engine and the node of a configuration and serve until a signal. Returns exit code, last status, and
    whether the back end hangs."""
    signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, signals.put_nowait, number)
    pipeline = config.pipeline
    chain = installed_chain(config.trigger.chain)
    backend = create_backend(pipeline.backend.value, chain.kernels, threads=thread_count(pipeline.threads))
    geometry, trigger = chain.load_geometry(config.geometry.directory), chain.load_trigger(config.trigger.file)
    engine = chain.create_engine(backend, geometry, trigger, batch_limits(config))
    engine.require_memory(pipeline.slots)
    node = Node(config, engine, backend=backend.name, version=package_version(), config_file=config_file)
    await node.start()
    following = asyncio.create_task(follow_signals(signals, node))
    exit_code = await node.run()
    following.cancel()
    return exit_code, node.status.full(), node.backend_hangs


async def follow_signals(signals: "asyncio.Queue[signal.Signals]", node: Node) -> None:
    """Pass signals to the node: SIGHUP reloads, SIGTERM or SIGINT drains and stops, a second one stops without
    draining.

    Signals received before the node was made wait in the queue.
    """
    while True:
        number = await signals.get()
        if number is signal.SIGHUP:
            node.request_reload()
        else:
            node.request_stop()


def package_version() -> str:
    """Version of the installed package."""
    try:
        return version("hltnode")
    except PackageNotFoundError:
        return "unknown"
