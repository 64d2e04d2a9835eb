"""The process of a node: its start, its signals and its end."""

import asyncio
import errno
import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

import typer
import uvloop

from hltnode.daemon.commands.common import (
    require_writable,
    thread_count,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.node.start_errors import json_errors
from hltnode.daemon.commands.node.streaming_options import streaming_constants
from hltnode.daemon.common import log
from hltnode.daemon.common.threads import in_daemon_thread
from hltnode.daemon.common.zmq_sockets import BindError
from hltnode.daemon.configuration.loading import errors_of, load_config, origin
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.machine.malloc_tuning import keep_heap
from hltnode.daemon.node.event_pictures import Draw
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits, decides_directly, names_of_lists, request_batch_limits
from hltnode.daemon.storage.directory_lock import check_directory
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.selection.configuration.conditions_folder import ConditionsFolder
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.followed_conditions import FollowedConditions
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain, installed_chain

# The longest time for the close of the node after a second signal.
LAST_SECONDS = 2.5
STDERR = 2

logger = log.get_logger("serve")


def run_process(config: Path, json: Path | None) -> NoReturn:
    """Be the process of a node, from its configuration to its exit code; see `hltnode serve`."""
    with user_errors(), json_errors(config):
        require_writable(json)
        settings = load_config(config)
        log.configure(settings.log.level, settings.log.format)
        keep_heap()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                exit_code, status, hangs = runner.run(serve_node(settings, config))
            except BindError as error:
                keys = [key for key, endpoint in settings.endpoints().items() if endpoint == error.endpoint]
                keys = keys or ["http.port"]
                where = origin(config, *keys)
                raise ValueError(f"{where}: {', '.join(keys)}: {error}{_advice(error)}") from error
        write_json(json, status)
    if hangs:
        # A normal exit would wait for a thread that does not return from its kernel.
        end_process(exit_code)
    raise typer.Exit(exit_code)


def _advice(error: BindError) -> str:
    port = error.endpoint.rpartition(":")[2]
    if error.errno != errno.EADDRINUSE or not port.isdigit():
        return ""
    return f"; another node or process uses it (ss -ltnp 'sport = :{port}')"


async def serve_node(config: NodeConfig, config_file: Path) -> tuple[int, dict[str, Any], bool]:
    """Create the engine and the node of a configuration and serve until a signal.

    Returns exit code, last status, and whether the back end hangs.
    """

    def create_node() -> Node:
        pipeline = config.pipeline
        with errors_of(config_file, "trigger.chain"):
            chain = installed_chain(config.trigger.chain)
        with errors_of(config_file, "trigger.file", config.trigger.file):
            trigger = chain.load_trigger(config.trigger.file)
        for key, names in (("output.lists", config.output.lists), ("decisions.lists", config.decisions.lists)):
            with errors_of(config_file, key):
                chain.with_sequence(trigger.sequence).check_lists(names)
        with errors_of(config_file, "geometry.directory", config.geometry.directory):
            geometry = chain.with_sequence(trigger.sequence).load_geometry(config.geometry.directory)
        geometry = {**geometry, **streaming_constants(config, config_file, chain, trigger)}
        if config.streaming.clock_offsets_ns:
            logger.info("clock_offsets", ns=config.streaming.clock_offsets_ns)
        with errors_of(config_file, "output.directory", config.output.directory.parent):
            check_directory(config.output.directory)
        backend = create_backend(
            pipeline.backend.value,
            chain.kernels,
            threads=thread_count(pipeline.threads),
            device=pipeline.device,
            memory_bound=pipeline.device_memory_bytes,
        )
        logger.info("back_end", name=backend.name, computes_on=backend.description)
        engine = chain.create_engine(
            backend, geometry, trigger, batch_limits(config), with_lists=names_of_lists(config)
        )
        engine.require_memory(pipeline.slots + decides_directly(config, backend.gpu))
        request_engine = None
        if config.requests.endpoint is not None:
            request_engine = chain.create_engine(backend, geometry, trigger, request_batch_limits(config))
            request_engine.require_direct_memory(engine, pipeline.slots)
        document = chain.document(trigger)
        logger.info(
            "trigger",
            chain=document.chain,
            tck=document.name,
            sequence=document.sequence,
            lines=len(document.line_names),
            of_built_in_menu=trigger.from_menu,
            file=None if config.trigger.file is None else str(config.trigger.file),
        )
        with errors_of(config_file, "conditions.folder", config.conditions.folder):
            followed = changing_conditions(config, chain, geometry, trigger)
        return Node(
            config,
            engine,
            backend=backend.name,
            gpu=backend.gpu,
            version=package_version(),
            trigger=document,
            config_file=config_file,
            followed=followed,
            request_engine=request_engine,
            draw=picture_loader(chain, geometry, trigger, followed) if chain.display else None,
        )

    node, exit_code = await follow_signals(create_node)
    return exit_code, node.status.full(), node.backend_hangs


def changing_conditions(
    config: NodeConfig, chain: TriggerChain, geometry: Constants, trigger: TriggerConfig
) -> FollowedConditions | None:
    """The conditions that change from run to run, from a folder or as measured; None if they do not change.

    Raises ConditionsError for an invalid folder, and if the only run of the node has no conditions.
    """
    path = config.conditions.folder
    if path is None:
        return FollowedConditions(chain, geometry, trigger) if config.trigger.follow_conditions else None
    folder = ConditionsFolder.load(path, chain.name, chain.conditions)
    if config.node.run:
        folder.interval_of(config.node.run)
    logger.info(
        "conditions", folder=str(path), version=folder.version, digest=folder.digest, intervals=len(folder.intervals)
    )
    return FollowedConditions(chain, geometry, trigger, folder)


def picture_loader(
    chain: TriggerChain, geometry: Constants, trigger: TriggerConfig, followed: FollowedConditions | None
) -> Callable[[], Draw]:
    """Creates the drawing function of the events, with the conditions of the run at the time of the call."""
    return lambda: chain.picture_maker(geometry, trigger if followed is None else followed.current.trigger)


async def follow_signals(create_node: Callable[[], Node]) -> tuple[Node, int]:
    """Start a node and run it until signals end it; returns it with the exit code of the process.

    SIGHUP reloads. SIGTERM or SIGINT drains and stops the node; during the start it ends the node at once, which has no
    data yet. A second signal stops the node without draining; a hung driver or disk then delays the end by at most
    `LAST_SECONDS`.
    """
    # The watchdog of systemd ends a hung node with SIGABRT; the log then has the stack of each thread.
    faulthandler.enable(STDERR)
    signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, signals.put_nowait, number)

    started: list[Node] = []

    async def start() -> Node:
        # Compiling kernels and allocating slots take seconds; signals must work meanwhile.
        node = await in_daemon_thread(create_node)
        # All present objects live until the end. A full garbage collection over them would block all Python threads for
        # 50 ms, and for 300 ms on a busy machine.
        gc.collect()
        gc.freeze()
        await node.start()
        started.append(node)
        return node

    async def next_stop() -> None:
        while (await signals.get()) is signal.SIGHUP:
            for node in started:
                node.request_reload()

    starting = loop.create_task(start())
    stopping = loop.create_task(next_stop())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        logger.warning("stopped_during_start")
        starting.cancel()
        await asyncio.wait((starting,), timeout=LAST_SECONDS)
        end_process(0)
    node = starting.result()
    running = loop.create_task(node.run())
    stops = 0
    while not running.done():
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            stops += 1
            node.request_stop()
            if stops == 2:
                loop.call_later(LAST_SECONDS, _give_up, node)
            stopping = loop.create_task(next_stop())
    stopping.cancel()
    if stops > 1:
        # Threads inside a batch or a system call would keep the interpreter from exiting.
        end_process(running.result())
    return node, running.result()


def _give_up(node: Node) -> None:
    """Check the accounting and exit, with files and sockets as they are."""
    logger.critical("not_closed", seconds=LAST_SECONDS)
    node.builder_control.check_accounts()
    end_process(1)


def end_process(exit_code: int) -> NoReturn:
    """Exit without waiting for any thread."""
    log.drain()
    # The reader of the output may have gone.
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(exit_code)


def package_version() -> str:
    """Version of the installed package."""
    try:
        return version("hltnode")
    except PackageNotFoundError:
        return "unknown"
