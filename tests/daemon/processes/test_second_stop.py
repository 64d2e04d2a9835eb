"""A second SIGTERM ends a node in every state, with its counts; Ctrl-C at any time shows no traceback."""

import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.event_building.accounting import closes
from tests.daemon.pages import metric, status_page
from tests.daemon.processes.test_processes import ROOT, Site, site
from tests.daemon.processes.test_signals import log_lines

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback, pytest.mark.timeout(300)]

# The node takes at most three seconds; the rest is for a busy machine.
END_SECONDS = 10.0


def catches(process: subprocess.Popen[bytes], number: signal.Signals) -> bool:
    """Whether the process has a handler for a signal."""
    [caught] = re.findall(r"^SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


def end(site: Site, node: subprocess.Popen[bytes], expected: int, *, stops: int = 1) -> None:
    """Send SIGTERM, and see that the node ends soon, without a traceback."""
    begin = time.monotonic()
    for _ in range(stops):
        node.send_signal(signal.SIGTERM)
        # Two signals of one kind that wait for a process are one.
        time.sleep(0.05)
    assert site.wait(node, END_SECONDS) == expected, site.logs()
    print(f"ended after {time.monotonic() - begin:.2f} s")
    assert "Traceback" not in site.logs()


def check_counts(site: Site) -> None:
    summary = log_lines(site, "run_summary")[-1]
    assert closes({"fragments": summary["fragments"], "meps": summary["meps"]})  # type: ignore[dict-item]


def no_more_room(site: Site, node: subprocess.Popen[bytes]) -> None:
    """No file of the node can grow beyond its largest one, that of the events; the log is shorter."""
    largest = max(path.stat().st_size for path in site.output.glob("*.part"))
    psutil.Process(node.pid).rlimit(psutil.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))


def start_draining(site: Site, node: subprocess.Popen[bytes]) -> None:
    node.send_signal(signal.SIGTERM)
    site.wait_for(lambda: metric(site.http, 'hltnode_run_state{state="draining"}') == 1)


@pytest.mark.parametrize("what", ["TEST_START_SECONDS", "TEST_HANG"])
def test_a_stop_while_the_engine_is_made_or_warms_up_ends_the_start(
    site: Site, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(what, "600")
    node = site.start("tests.daemon.node_process", str(site.config))
    if what == "TEST_HANG":
        site.wait_for(lambda: site.status() is not None)
    else:
        site.wait_for(lambda: catches(node, signal.SIGTERM))
    end(site, node, 0)
    assert log_lines(site, "stopped_during_start")


@pytest.mark.slow
def test_a_second_stop_while_an_operator_warms_up_the_back_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLTNODE_NODE__AUTOSTART", "false")
    monkeypatch.setenv("TEST_HANG", "1")
    node = site.start_node()
    configure = site.start("hltnode.daemon", "ctl", "configure", "--to", site.control, "--timeout", "20")
    site.wait_for(lambda: metric(site.http, 'hltnode_run_state{state="idle"}') == 0)
    node.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert node.poll() is None
    end(site, node, 1)
    check_counts(site)
    configure.kill()


def test_a_second_stop_while_a_batch_is_computed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_BATCH_SECONDS", "600")
    node = site.start_node()
    site.start_feeder(1)
    site.wait_for(lambda: metric(site.http, 'hltnode_slots{state="run"}') > 0)
    start_draining(site, node)
    end(site, node, 1)
    check_counts(site)


def test_a_second_stop_while_the_disk_is_full(site: Site) -> None:
    node = site.start_node()
    site.start_feeder(1)
    site.wait_for_events(300)
    no_more_room(site, node)
    site.wait_for(lambda: metric(site.http, 'hltnode_condition{condition="disk"}') == 0)
    start_draining(site, node)
    end(site, node, 1)
    check_counts(site)
    assert log_lines(site, "abandoned")


def test_a_second_stop_while_an_output_waits_for_its_consumer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLTNODE_EVENTS__ENDPOINT", f"tcp://127.0.0.1:{free_ports(1)[0]}")
    monkeypatch.setenv("HLTNODE_EVENTS__QUEUE", "1")
    node = site.start_node()
    site.start_feeder(1)
    site.wait_for(lambda: metric(site.http, 'hltnode_condition{condition="outputs"}') == 0)
    start_draining(site, node)
    end(site, node, 1)
    check_counts(site)


@pytest.mark.slow
def test_two_stops_in_a_row(site: Site) -> None:
    node = site.start_node()
    site.start_feeder(1)
    site.wait_for_events(50)
    end(site, node, 1, stops=2)
    check_counts(site)


@pytest.mark.parametrize("milliseconds", [0, 100, 250, 500, 1000, 2000])
def test_ctrl_c_in_the_first_seconds_of_serve_shows_no_traceback(site: Site, milliseconds: int) -> None:
    # The code of the console script.
    code = "from hltnode.daemon.__main__ import main; print('begin', flush=True); main()"
    arguments = [sys.executable, "-c", code, "serve", "--config", str(site.config)]
    node = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    site.processes.append(node)
    assert node.stdout is not None
    # Until then Ctrl-C finds the interpreter itself, which catches no SIGTERM.
    assert node.stdout.readline() == b"begin\n"
    site.wait_for(lambda: catches(node, signal.SIGTERM))
    time.sleep(milliseconds / 1000)
    node.send_signal(signal.SIGINT)
    _, error = node.communicate(timeout=60)
    assert b"Traceback" not in error, error.decode()
    assert status_page(site.http) is None
