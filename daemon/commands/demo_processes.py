"""Processes of `hltnode demo`: the node, its feeders, and what they tell."""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import IO

from hltnode.daemon.commands.tied import tied

START_SECONDS = 60.0
STOP_SECONDS = 30.0
_given: set[int] = set()
"""Ports that `free_ports` has returned."""


class DemoError(RuntimeError):
    """The demo failed; the message is the reason."""


@contextlib.contextmanager
def child(*arguments: str, stderr: IO[str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A subprocess that ends with the demo, also if the demo is killed."""
    command = tied([sys.executable, "-P", "-m", "hltnode.daemon", *arguments])
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until_running(node: subprocess.Popen[bytes], url: str) -> None:
    """Wait for the HTTP pages and the warm-up of the node. Raises DemoError."""
    end = time.monotonic() + START_SECONDS
    reason = ""
    while time.monotonic() < end:
        if node.poll() is not None:
            raise DemoError(f"the node did not start: exit code {node.returncode}")
        try:
            state = json.loads(get(f"{url}/status"))["state"]
        except OSError as error:
            reason = f"its HTTP pages do not answer: {error}"
        else:
            if state == "running":
                return
            reason = f"its state is {state}"
        time.sleep(0.1)
    raise DemoError(f"the node was not ready after {START_SECONDS:.0f} s: {reason}")


def get(url: str) -> str:
    """The body of an HTTP page. Raises OSError, also if the process dies while it answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            body: bytes = response.read()
    except http.client.HTTPException as error:
        raise ConnectionError(f"{url}: {error!r}") from error
    return body.decode()


def free_ports(n: int) -> list[int]:
    """Free ports of the loopback interface, none of which this process got before: what gets them may start later."""
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        while len(found) < n:
            each = stack.enter_context(socket.socket())
            each.bind(("127.0.0.1", 0))
            port = each.getsockname()[1]
            if port not in _given:
                found.append(port)
        _given.update(found)
    return found
