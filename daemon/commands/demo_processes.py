"""Processes of `hltnode demo`: the node, its feeders, and what they tell."""

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import IO

START_SECONDS = 60.0
STOP_SECONDS = 30.0


class DemoError(RuntimeError):
    """The demo failed; the message is the reason."""


@contextlib.contextmanager
def child(*arguments: str, stderr: IO[str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A subprocess that ends with the demo."""
    command = [sys.executable, "-P", "-m", "hltnode.daemon", *arguments]
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
        except urllib.error.URLError as error:
            reason = f"its HTTP pages do not answer: {error.reason}"
        else:
            if state == "running":
                return
            reason = f"its state is {state}"
        time.sleep(0.1)
    raise DemoError(f"the node was not ready after {START_SECONDS:.0f} s: {reason}")


def get(url: str) -> str:
    """The body of an HTTP page."""
    with urllib.request.urlopen(url, timeout=10) as response:
        body: bytes = response.read()
    return body.decode()


def free_ports(n: int) -> list[int]:
    """Currently free ports of the loopback interface."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
