"""What the feeders and the consumer of a soak record."""

import json
import os
from pathlib import Path

import pytest

from hltnode.client.fault_injection import REORDER_NS, FaultPlan
from hltnode.protocol.transport.decisions import MepDecision
from hltnode.protocol.transport.frame_header import encode_frame
from tests.daemon.fakes import RUN, SOURCES
from tests.soak.consumer import SlowConsumer
from tests.soak.feeder_process import HELD_NS, RecordingInjector


def decision(seq: int, mep: int) -> MepDecision:
    return MepDecision("a", RUN, mep, seq, 0, 0, 0, 0, "complete", (), b"", b"", b"")


def test_a_decision_comes_twice_only_with_its_number_and_its_mep() -> None:
    consumer = SlowConsumer("tcp://127.0.0.1:1", 1)
    # The first session was killed after its first decision.
    for each in (decision(0, 5), decision(0, 6), decision(1, 7), decision(3, 9), decision(0, 9)):
        consumer.take(each)
    assert not consumer.problems
    assert [numbers.seen for numbers in consumer.sessions] == [[0], [0, 1, 3], [0]]
    assert (consumer.taken, consumer.missed) == (5, 1)
    consumer.take(decision(0, 9))
    assert consumer.problems == ["decision 0 of a came twice in one session"]


@pytest.mark.parametrize(("held_ns", "faults"), [(HELD_NS, []), (HELD_NS + 1, ["reorder"])])
def test_a_reordered_frame_that_was_held_for_long_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_ns: int, faults: list[str]
) -> None:
    log = tmp_path / "records"
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    monkeypatch.setattr(RecordingInjector, "log", descriptor)
    try:
        injector = RecordingInjector(FaultPlan(reorder=1.0), "1/0")
        frame = encode_frame(b"MFP", run=RUN, mep_id=12, source_id=SOURCES[0])
        assert injector.take(1000, frame) == []
        assert injector.due(1000 + held_ns) == [frame]
    finally:
        os.close(descriptor)
    assert held_ns > REORDER_NS
    records = [json.loads(line) for line in log.read_text().splitlines()]
    found = [record for record in records if "fault" in record]
    assert [record["fault"] for record in found] == faults
    assert all((each["run"], each["mep"], each["source"]) == (RUN, 12, SOURCES[0]) for each in found)
