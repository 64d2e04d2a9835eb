"""A node process with a chain from a folder: python -m tests.daemon.processes.node_of_chain CONFIG DIR.

Its watchdog acts after two seconds.
"""

import sys

from hltnode.daemon.cli import app
from hltnode.daemon.monitoring import health
from hltnode.daemon.node import node

if __name__ == "__main__":
    config, directory = sys.argv[1:]
    sys.path.insert(0, directory)
    health.PIPELINE_STALL_NS = 2_000_000_000
    node.STOP_SECONDS = 1.0
    app(["serve", "--config", config])
