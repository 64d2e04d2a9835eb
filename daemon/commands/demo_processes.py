"""Processes of `hltnode demo`: the node, its feeders, and what they tell."""

import contextlib
import errno
import http.client
import json
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from hltnode.daemon.commands.tied import tied

START_SECONDS = 60.0
STOP_SECONDS = 30.0
_given: set[int] = set()
"""Ports that `free_ports` has returned."""
FIRST_PORT = 10_000
TRIES = 10_000
PORTS_OF_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Processes of a test run that all start from the same seed must not choose the same ports and names.
_RANDOM = random.SystemRandom()


class DemoError(RuntimeError):
    """The demo failed; the message is the reason."""


def new_node_name() -> str:
    """The name of a node that no other demo has.

    A node finishes what the journal of its name has left. A demo that was killed leaves a run there, which would take
    the events of the next demo in the same folder for events that it has already.
    """
    return f"demo-{_RANDOM.getrandbits(32):08x}"


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
    """Free ports of the loopback interface, none of which this process got before: what gets them may start later.

    They lie below the ports that the system gives to connections. A peer that connects again and again to a port where
    nothing listens yet would some time get that very port for itself, and the listener could not start.

    Raises OSError if no port is free.
    """
    first_of_connections = _first_port_of_connections()
    found: list[int] = []
    for _ in range(TRIES):
        if len(found) == n:
            break
        port = _RANDOM.randrange(FIRST_PORT, first_of_connections)
        if port not in _given and _is_free(port):
            _given.add(port)
            found.append(port)
    if len(found) < n:
        raise OSError(errno.EADDRINUSE, f"no free port was found from {FIRST_PORT} to {first_of_connections - 1}")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as each:
        try:
            each.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _first_port_of_connections() -> int:
    """The end of the range is one of connections, too, if a machine gives them nearly all ports."""
    try:
        first = int(PORTS_OF_CONNECTIONS.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32768
    return first if first >= FIRST_PORT + 1000 else 65536
