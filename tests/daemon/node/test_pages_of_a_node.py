"""The pages of a real node: its last hour, its overview, the farm, and commands with the token."""

import asyncio
import json
import re
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from hltnode.daemon.monitoring.farm_page.farm_reader import read_node
from hltnode.daemon.monitoring.status_page.last_hour import QUANTITIES
from hltnode.daemon.run_control.state_machine import legal_commands
from hltnode.protocol.transport.run_control_messages import RunState
from tests.daemon.fakes import make_config, running_node

pytestmark = pytest.mark.loopback

TOKEN = "0123456789abcdef0123"


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def post(url: str, **headers: str) -> int:
    request = urllib.request.Request(url, b"", headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


async def test_a_node_shows_itself_and_a_dead_node_on_its_farm_page(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as own, socket.create_server(("127.0.0.1", 0)) as closed:
        port, dead = own.getsockname()[1], f"http://127.0.0.1:{closed.getsockname()[1]}"
    base = f"http://127.0.0.1:{port}"
    config = make_config(tmp_path, http={"port": port, "farm_nodes": [base, dead]})
    async with running_node(config):
        overview = await asyncio.to_thread(read_node, base)
        assert (overview.node, overview.state, overview.ready) == ("testnode", RunState.RUNNING, False)
        history = json.loads(await asyncio.to_thread(get, f"{base}/history"))
        assert (history["node"], history["period_s"], set(history["samples"])) == (
            "testnode",
            10,
            {"time", *QUANTITIES},
        )
        for _ in range(500):
            page = await asyncio.to_thread(get, f"{base}/farm")
            if ">testnode</a></td>" in page and "connection refused" in page:
                break
            await asyncio.sleep(0.01)
        assert re.search(f'<tr role="row" class="lost"><td [^>]+><a href="{dead}"', page)
        assert ">testnode</a></td>" in page
        status = await asyncio.to_thread(get, f"{base}/")
        assert f'<a href="{dead}"' in status
        assert "takes no commands" in status
        assert await asyncio.to_thread(post, f"{base}/control/pause", Authorization=f"Bearer {TOKEN}") == 403


async def test_the_status_page_offers_the_commands_that_the_state_allows(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    config = make_config(tmp_path, security={"http_token_file": str(token)})
    async with running_node(config) as (node, _):
        base = f"http://127.0.0.1:{node.http_port}"
        status = await asyncio.to_thread(get, f"{base}/")
        assert f'data-legal="{" ".join(legal_commands(RunState.RUNNING))}"' in status
        headers = {"Authorization": f"Bearer {TOKEN}", "Sec-Fetch-Site": "cross-site"}
        assert await asyncio.to_thread(post, f"{base}/control/pause", **headers) == 403
        states = [node.state]
        headers["Sec-Fetch-Site"] = "same-origin"
        assert await asyncio.to_thread(post, f"{base}/control/pause", **headers) == 200
        states.append(node.state)
        assert states == [RunState.RUNNING, RunState.PAUSED]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            await asyncio.to_thread(get, f"{base}/farm")
