"""`hltnode serve` that records its fsync calls: python -m tests.soak.node_process ROOT serve ..."""

import sys
from pathlib import Path

from hltnode.daemon.cli import app
from tests.soak import recorder

if __name__ == "__main__":
    recorder.install(Path(sys.argv.pop(1)))
    app()
