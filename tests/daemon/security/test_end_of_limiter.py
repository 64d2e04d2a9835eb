"""The end of the limiter: libzmq waits without end to report to a monitor that is closed."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own: no time limit ends a wait inside libzmq.
END = """
import itertools, sys, zmq
from hltnode.daemon.common.vocabulary import Endpoint
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.security.connection_limiter import ConnectionLimiter
from hltnode.daemon.security.connection_table import ConnectionLimits

how = sys.argv[1]
times = itertools.count(0, 2_000_000_000)  # more than the time that the thread of the limiter waits for last events
context = zmq.Context()
def crashed(error):
    print("crashed", error)
limits = ConnectionLimits(8, 8, 8)
limiter = ConnectionLimiter(context, limits, OperationCounters(), crashed, clock_ns=lambda: next(times))
socket = context.socket(zmq.PULL)
limiter.watch(socket, Endpoint.DATA)
socket.bind("tcp://127.0.0.1:*")
if how == "failed":
    limiter._drain = None
else:
    limiter._stopping.set()
for number in range(30):
    with context.socket(zmq.PUSH) as peer:
        peer.connect(socket.getsockopt_string(zmq.LAST_ENDPOINT))
        if number == 0:
            limiter._thread.join()
        peer.send(b"x")
        socket.recv()
if how == "sockets closed":
    socket.close()
limiter.close()
socket.close()
context.term()
print("ended")
"""


@pytest.mark.process
@pytest.mark.parametrize("how", ["sockets open", "sockets closed", "failed"])
def test_a_thread_that_ends_before_its_monitors_keeps_no_node_from_its_end(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", END, how], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["ended"]), done.stdout + done.stderr
    assert done.stdout.startswith("crashed") == (how == "failed")
