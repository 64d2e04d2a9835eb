"""A node that sends decisions first and is killed: what is decided twice, and what is lost."""

import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import zmq

from hltnode.daemon.event_building.accounting import closes
from hltnode.protocol.transport.decisions import MepDecision, decode_decision
from tests.daemon.processes.test_processes import Site

pytestmark = [pytest.mark.process, pytest.mark.loopback]

MEPS = 60


class Listener:
    """Collects the decisions of all sessions of a node, in a thread."""

    def __init__(self, endpoint: str) -> None:
        self.decisions: list[MepDecision] = []
        self._context = zmq.Context[zmq.Socket[bytes]]()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.subscribe(b"")
        self._socket.setsockopt(zmq.RCVTIMEO, 50)
        self._socket.setsockopt(zmq.RECONNECT_IVL, 5)
        self._socket.connect(endpoint)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self.decisions.append(decode_decision(self._socket.recv()))
            except zmq.Again:
                continue

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._context.destroy(linger=0)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, 1, MEPS)
    text = site.config.read_text()
    text = text.replace("[output]\n", '[latency]\ndecisions_first = true\n[output]\nstreams = ["error"]\n')
    site.config.write_text(text.replace("max_events = 256", "max_events = 16"))
    yield site
    for process in site.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_a_killed_node_repeats_decisions_with_the_same_content_and_loses_none(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each batch takes a while after its decisions have left and before the journal has it.
    monkeypatch.setenv("TEST_COMMIT_SECONDS", "0.1")
    endpoint = next(line.split('"')[1] for line in site.config.read_text().splitlines() if "decisions =" in line)
    listener = Listener(endpoint)
    try:
        node = site.start_node()
        feeder = site.start_feeder(1)
        site.wait_for(lambda: len(listener.decisions) >= 10)
        node.kill()
        node.wait()
        monkeypatch.setenv("TEST_COMMIT_SECONDS", "0")
        node = site.start_node()
        assert site.wait(feeder) == 0, site.logs()
        status = site.status()
        assert status is not None
        assert closes(status["accounting"])
        node.send_signal(signal.SIGTERM)
        assert site.wait(node) == 0, site.logs()
        site.wait_for(lambda: {each.mep for each in listener.decisions} == set(range(MEPS)))
    finally:
        listener.close()
    found: dict[int, list[MepDecision]] = defaultdict(list)
    for decision in listener.decisions:
        found[decision.mep].append(msgspec.structs.replace(decision, seq=0))
    # Everything else of a repeated message is the same: the sequence number counts in a session.
    assert all(each == of_mep[0] for of_mep in found.values() for each in of_mep)
    assert sum(len(of_mep) == 2 for of_mep in found.values()) >= 1
    assert max(len(of_mep) for of_mep in found.values()) == 2
    assert not list(site.output.glob("*accepted*"))
