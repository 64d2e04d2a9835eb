"""Opens the pages of a running node, HTML reports and a display in Chromium and checks them with axe: `make pages`.

It needs Debian's chromium, node and npm, and the network for two packages. The node has an engine without kernels, a
token, and a farm of itself, of a closed port and of servers that lie. Pictures go to build/pages.
"""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import numpy as np
import zmq.asyncio

from hltnode.daemon.common.recent_lines import RECENT_LINES
from hltnode.daemon.monitoring.status_page.last_hour import PERIOD_NS, SAMPLES
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from tests.daemon.fakes import RUN, make_config, make_feeder, running_node, synthetic_meps
from tests.daemon.monitoring.test_farm_page import HOSTILE, overview

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "build" / "pages"
TOKEN = "0123456789abcdef0123"
HLTNODE = str(Path(sys.executable).with_name("hltnode"))
REPORTS = {
    "rates": ("--report",),
    "efficiency": ("--report",),
    "validate": ("--report",),
    "compare": ("jpsi.mdf", "-o"),
    "display": ("--event", "1", "-o"),
}
"""Commands that make a page of a sample, and their last arguments before the name of the page."""
EVENTS = 12


class Liar(BaseHTTPRequestHandler):
    """A node of the farm whose path decides how it answers."""

    def do_GET(self) -> None:
        if self.path.startswith("/hostile"):
            body = msgspec.json.encode(overview(HOSTILE))
        elif self.path.startswith("/ready"):
            body = msgspec.json.encode(
                overview("0x1", ready=True, problems=(), n_missing_feeders=0, missing_feeders=(), node="farm-17")
            )
        else:
            body = b"x" * 1_000_000
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def fill_hour(node: Node) -> None:
    """Give the node a past of one hour, with an interruption."""
    hour, now_ns = node._core.rates.hour, node._core.clock.true_ns
    wave = np.sin(np.arange(SAMPLES) / 25) + np.random.default_rng(1).normal(0, 0.1, SAMPLES)
    hour._ends[:] = now_ns - np.arange(SAMPLES - 1, -1, -1) * PERIOD_NS
    hour._values[:] = np.stack([1e6 + 2e5 * wave, 3e3 + 5e2 * wave, 0.1 + 0.05 * wave, 0.02 + 0.002 * wave], axis=1)
    hour._values[100:140] = np.nan
    hour._n = SAMPLES


def fill_log() -> None:
    """Give the page a warning with a long text."""
    line = {"level": "warning", "timestamp": "2026-01-01 00:00:00", "part": "run_keeper", "event": "run_kept"}
    RECENT_LINES(None, "warning", line | {"missing": [f"feeder-{number}" for number in range(30)]})


def make_reports(folder: Path) -> dict[str, str]:
    """The addresses of reports and of an event display, made in the folder. Raises subprocess.CalledProcessError."""

    def run(*arguments: str) -> None:
        subprocess.run([HLTNODE, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    run("simulate", "-n", str(EVENTS), "--sample", "jpsi", "-o", "jpsi.mdf")
    for command, last in REPORTS.items():
        run(command, "jpsi.mdf", *last, f"{command}.html")
    return {command: (folder / f"{command}.html").as_uri() for command in REPORTS}


async def main() -> int:
    """Run the checks; returns the exit code."""
    chromium, npm = shutil.which("chromium"), shutil.which("npm")
    if chromium is None or npm is None:
        print("make pages needs chromium, node and npm: apt-get install chromium nodejs npm", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "package.json", FOLDER)
    install = await asyncio.create_subprocess_exec(npm, "install", "--silent", "--no-audit", "--no-fund", cwd=FOLDER)
    if await install.wait():
        return 2
    liar = ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=liar.serve_forever, daemon=True).start()
    with socket.create_server(("127.0.0.1", 0)) as closed, socket.create_server(("127.0.0.1", 0)) as own:
        closed_port, port = closed.getsockname()[1], own.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder, zmq.asyncio.Context() as context:
        files = await asyncio.to_thread(make_reports, Path(folder))
        token = Path(folder) / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        base = f"http://127.0.0.1:{port}"
        lies = f"http://127.0.0.1:{liar.server_port}"
        nodes = [base, f"{lies}/ready", f"{lies}/hostile", f"{lies}/huge", f"http://127.0.0.1:{closed_port}"]
        config = make_config(
            Path(folder),
            http={"port": port, "farm_nodes": nodes, "documentation": "https://docs.example/"},
            security={"http_token_file": str(token)},
        )
        async with running_node(config, tuple(f"Hlt1Line{i}" for i in range(30))) as (node, _):
            fill_hour(node)
            fill_log()
            async with make_feeder(context, node, run=RUN) as feeder:
                await feed_meps(synthetic_meps(20), [feeder])
                pages = {"status": f"{base}/", "farm": f"{base}/farm"}
                wanted = {
                    "chromium": chromium,
                    "folder": str(FOLDER),
                    "modules": str(FOLDER),
                    "pages": pages,
                    "files": files,
                }
                wanted |= {"status": f"{base}/", "token": TOKEN}
                script = str(HERE / "check_pages.mjs")
                check = await asyncio.create_subprocess_exec("node", script, json.dumps(wanted))
                return await check.wait()


sys.exit(asyncio.run(main()))
