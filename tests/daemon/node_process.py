"""A node with the fake engine as a process of its own: python -m tests.daemon.node_process CONFIG."""

import asyncio
import signal
import sys
from pathlib import Path

import uvloop

from hltnode.daemon.commands.serve import follow_signals
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from tests.daemon.fakes import FakeEngine


async def main(config_file: Path) -> int:
    config = load_config(config_file)
    engine = FakeEngine(batch_limits(config))
    engine.behaviour.seconds = 0.005
    node = Node(config, engine, backend="fake", version="0", config_file=config_file)
    signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    await node.start()
    following = asyncio.create_task(follow_signals(signals, node))
    exit_code = await node.run()
    following.cancel()
    return exit_code


if __name__ == "__main__":
    log.configure("info", LogFormat.JSON)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main(Path(sys.argv[1]))))
