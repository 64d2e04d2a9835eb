"""A node whose log cannot be written takes data as before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.daemon.processes.test_processes import ROOT, WANTED, Site, site

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback]


def descriptors(log: str) -> tuple[int, int]:
    """Descriptors of both ends of a log; the reader is -1 where there is none."""
    if log == "full":
        return -1, os.open("/dev/full", os.O_WRONLY)
    reading, writing = os.pipe()
    if log == "stalled":
        os.set_blocking(writing, False)
        try:
            while True:
                os.write(writing, 4096 * b" ")
        except BlockingIOError:
            os.set_blocking(writing, True)
    return reading, writing


@pytest.mark.parametrize("log", ["gone", "full", "stalled"])
def test_a_node_whose_log_cannot_be_written_takes_data_and_ends_in_order(site: Site, log: str) -> None:
    reading, writing = descriptors(log)
    node = subprocess.Popen(
        [sys.executable, "-m", "tests.daemon.node_process", str(site.config)], cwd=ROOT, stderr=writing
    )
    site.processes.append(node)
    os.close(writing)
    if log == "gone":
        os.close(reading)
    site.wait_for(lambda: site.status() is not None)
    assert site.wait(site.start_feeder(1)) == 0, site.logs()
    status = site.status()
    assert status is not None
    # A stalled reader costs nothing before the queue is full.
    assert (status["log_lines_lost"] > 0) == (log != "stalled")
    begin = time.monotonic()
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0
    assert time.monotonic() - begin < 20
    assert set(site.kept_events()) == WANTED
    if log == "stalled":
        os.close(reading)
