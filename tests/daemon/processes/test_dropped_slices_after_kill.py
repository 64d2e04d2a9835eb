"""A node that drops slices is killed: each slice is kept with all its windows, or dropped as a whole and counted."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import ModuleType

import pytest
import zmq

from hltnode.daemon.event_building.accounting import closes
from hltnode.processing.framework.flags import EventFlag
from hltnode.protocol.transport.decisions import SliceDecision, decode_decision
from tests.daemon.fakes import RUN
from tests.daemon.node.streamed_hits import LENGTH, N_SUB_SLICES, make_stream, windows_in, write_slices
from tests.daemon.pages import all_metrics
from tests.daemon.processes.test_processes import Site

pytestmark = [pytest.mark.process, pytest.mark.loopback]


class Listener:
    """Receives the decisions of both sessions in a thread."""

    def __init__(self, endpoint: str) -> None:
        self.decisions: list[SliceDecision] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(endpoint,))
        self._thread.start()

    def _run(self, endpoint: str) -> None:
        with zmq.Context() as context, context.socket(zmq.SUB) as socket:
            socket.linger = 0
            # It is there before the feeder, whose hello the node answers first.
            socket.reconnect_ivl = 5
            socket.subscribe(b"")
            socket.connect(endpoint)
            while not self._ends.is_set():
                if socket.poll(50):
                    decision = decode_decision(socket.recv())
                    assert isinstance(decision, SliceDecision)
                    self.decisions.append(decision)

    def stop(self) -> None:
        self._ends.set()
        self._thread.join()


def test_a_kill_leaves_each_slice_whole_or_dropped(stream: ModuleType, tmp_path: Path) -> None:
    hits = make_stream(stream.SOURCES, seed=8)
    site = Site(tmp_path, 1, meps=1)
    slices, package = tmp_path / "slices.mdf", str(stream.STREAM.source.parents[1])
    n_events = write_slices(slices, stream, hits, core=1)
    text = site.config.read_text().replace("max_events = 256", f"max_events = {n_events}")
    site.config.write_text(text + '[trigger]\nchain = "stream"\n[streaming]\nhead_room = "drop"\n')
    [endpoint] = [line.split('"')[1] for line in text.splitlines() if line.startswith("decisions")]
    listener = Listener(endpoint)
    try:
        node = site.start("tests.daemon.processes.slow_node_of_chain", str(site.config), package)
        site.wait_for(
            lambda: site.status() is not None and all_metrics(site.http)["hltnode_decision_subscriptions"] > 0, 180.0
        )
        feeder = site.start(
            *("tests.daemon.processes.command_of_chain", package, "replay", str(slices), "--chain", "stream"),
            *("--to", site.data, "--control", site.control, "--run", str(RUN), "--rate", "30", "--wait"),
            *("--events-per-mep", str(n_events)),
        )
        site.wait_for(
            lambda: (
                (status := site.status()) is not None
                and status["events"]["processed"] >= 8 * n_events
                and status["streaming"]["dropped"]["drop"] > 0
            ),
            180.0,
        )
        node.kill()
        assert site.wait(node) == -signal.SIGKILL
        assert feeder.poll() is None
        node = site.start("tests.daemon.processes.slow_node_of_chain", str(site.config), package)
        assert site.wait(feeder) == 0, site.logs()
        status = site.status()
        assert status is not None
        assert closes(status["accounting"])
        node.terminate()
        assert site.wait(node) == 0, site.logs()
    finally:
        listener.stop()
        for process in site.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    decided: dict[int, bool] = {}
    for decision in listener.decisions:
        assert decision.mep not in decided, "a slice was decided twice"
        decided[decision.mep] = bool((decision.event_flags() == int(EventFlag.DROPPED)).all())
    # The decisions of a batch in the journal that the killed node had not published are not sent again.
    undecided = set(range(N_SUB_SLICES)) - decided.keys()
    assert len(undecided) <= 3
    dropped = {mep for mep, is_dropped in decided.items() if is_dropped}
    assert 5 < len(dropped) < N_SUB_SLICES
    records = windows_in(sorted(site.output.glob("*accepted*.mdf")))
    assert len({record.id for record in records}) == len(records)
    # A window begins 100 ns before its first hit, and belongs to the slice of that hit.
    expected = {max(0, end - 150) // LENGTH for _, end, _, _ in hits.windows()}
    found = {record.slice for record in records}
    assert found - undecided == expected - dropped - undecided
    assert found
