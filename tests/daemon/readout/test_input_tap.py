"""The tap of the input with a recorder that does not read."""

import time

import pytest
import zmq

from hltnode.daemon._native import OpenMeps
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.monitoring.counters import TapCounters
from hltnode.daemon.readout.input_tap import InputTap
from hltnode.daemon.recorder.mep_assembly import MepAssembly
from hltnode.protocol.transport.tap_message import CLOSED

pytestmark = pytest.mark.loopback

FRAME = bytes(200_000)
MEPS = 100
FRAGMENTS = 4


def open_tap(context: zmq.Context[zmq.Socket[bytes]], counters: TapCounters, buffer_bytes: int) -> InputTap:
    return InputTap(
        context,
        "tcp://127.0.0.1:*",
        counters,
        buffer_bytes=buffer_bytes,
        prepare=lambda _socket: None,
        clock_ns=time.monotonic_ns,
    )


def connect(recorder: zmq.Socket[bytes], tap: InputTap, counters: TapCounters) -> None:
    recorder.setsockopt(zmq.RCVHWM, 4)
    recorder.setsockopt(zmq.LINGER, 0)
    recorder.subscribe(b"")
    recorder.connect(tap.endpoint)
    wait_for_recorders(tap, counters, 1)


def take_mep(tap: InputTap, number: int) -> None:
    record = MepRecord(mep=number, slot=0, first_event=0, n_events=1, opened_ns=0, n_sources=FRAGMENTS)
    meps = OpenMeps(1, FRAGMENTS * len(FRAME))
    meps.start_run(1, range(FRAGMENTS))
    meps.open(number, 0, 0, 1, record.arrived)
    for source in range(FRAGMENTS):
        tap.fragment_taken(FRAME, 1, number)
        meps.add(number, source, 0, len(FRAME), 0)
    tap.mep_closed(1, record)


def read_closed(tap: InputTap, recorder: zmq.Socket[bytes], assembly: MepAssembly, n: int) -> None:
    """Read until this number of MEPs is closed."""
    end = time.monotonic() + 20.0
    while n:
        assert time.monotonic() < end
        tap.changed()
        while n and recorder.poll(20):
            parts = recorder.recv_multipart()
            n -= parts[0].startswith(CLOSED)
            assembly.take(parts)


def test_a_recorder_that_does_not_read_delays_nothing_and_its_losses_are_counted() -> None:
    counters = TapCounters()
    with zmq.Context() as context, context.socket(zmq.SUB) as recorder:
        tap = open_tap(context, counters, 2 << 20)
        connect(recorder, tap, counters)
        begin = time.monotonic()
        for number in range(MEPS):
            take_mep(tap, number)
        assert time.monotonic() - begin < 30.0
        assert counters.dropped > 0
        assert counters.meps + counters.dropped == MEPS
        assembly = MepAssembly()
        read_closed(tap, recorder, assembly, counters.meps)
        # The gap is seen when the recorder has caught up and the next message comes.
        take_mep(tap, MEPS)
        read_closed(tap, recorder, assembly, 1)
        # All zeros are no MFPs: what matters here is that each MEP that was not dropped is whole.
        assert assembly.counts.cut_meps == 0
        assert assembly.counts.damaged_meps == counters.meps
        assert assembly.counts.missed_messages > 0
        tap.close(0)


def test_no_frames_are_kept_without_a_recorder() -> None:
    counters = TapCounters()
    with zmq.Context() as context:
        tap = open_tap(context, counters, 1 << 20)
        for number in range(20):
            tap.fragment_taken(FRAME, 1, number)
            tap.mep_closed(
                1, MepRecord(mep=number, slot=0, first_event=0, n_events=1, opened_ns=0, n_sources=FRAGMENTS)
            )
        assert counters == TapCounters()
        tap.close(0)


def test_frames_that_a_recorder_left_behind_need_no_room_for_the_next_one() -> None:
    counters = TapCounters()
    with zmq.Context() as context:
        tap = open_tap(context, counters, FRAGMENTS * len(FRAME))
        number = 0
        for last in (False, True):
            with context.socket(zmq.SUB) as recorder:
                connect(recorder, tap, counters)
                if last:
                    dropped = counters.dropped
                    take_mep(tap, number)
                    assert counters.dropped == dropped
                while not last and not counters.dropped:
                    take_mep(tap, number)
                    number += 1
            # Only waits: a send would drop the waiting frames, because ZeroMQ has no recorder for them any more.
            assert tap._socket.poll(10_000, zmq.POLLIN)
            assert last or len(tap._waiting) > FRAGMENTS // 2
            wait_for_recorders(tap, counters, 0)
        tap.close(0)


def wait_for_recorders(tap: InputTap, counters: TapCounters, n: int) -> None:
    end = time.monotonic() + 10.0
    while counters.subscribers != n:
        assert time.monotonic() < end
        tap.changed()
