"""The tap of whole MEPs: exact copies, a prescale, and a reader that does not read."""

import time
from collections.abc import Iterator

import numpy as np
import pytest
import zmq

from hltnode.daemon._native import OpenMeps
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.monitoring.counters import TapCounters
from hltnode.daemon.readout.mep_tap import MepTap
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.transport.tap_message import TappedMep, decode_tapped
from tests.daemon.fakes import SOURCES, synthetic_meps

pytestmark = pytest.mark.loopback

RUN, EVENTS = 7, 20
BUFFER_BYTES = 1 << 20
SLOT_BYTES = 400_000


class Bench:
    """A tap with one slot, which holds one MEP of 300 kB, and a reader."""

    def __init__(self, *, prescale: int = 1) -> None:
        self.context = zmq.Context[zmq.Socket[bytes]]()
        self.counters = TapCounters()
        self.slot = bytearray(SLOT_BYTES)
        self.tap = MepTap(
            self.context, "tcp://127.0.0.1:*", self.counters, [memoryview(self.slot)], lambda: EVENTS, "raw",
            prescale=prescale, buffer_bytes=BUFFER_BYTES, prepare=lambda _socket: None, clock_ns=time.monotonic_ns,
        )  # fmt: skip
        self.mfps = next(iter(synthetic_meps(1, events=EVENTS, size=8000))).mfps
        self.reader = self.context.socket(zmq.SUB)
        self.reader.setsockopt(zmq.RCVHWM, 4)
        self.reader.setsockopt(zmq.LINGER, 0)

    def subscribe(self) -> None:
        self.reader.subscribe(b"")
        self.reader.connect(self.tap.endpoint)
        end = time.monotonic() + 10.0
        while not self.counters.subscribers:
            assert time.monotonic() < end
            self.tap.changed()

    def close_mep(self, mep: int, missing: tuple[int, ...] = ()) -> None:
        """Build a MEP in the slot and close it."""
        record = MepRecord(mep=mep, slot=0, first_event=0, n_events=EVENTS, opened_ns=0, n_sources=len(SOURCES))
        record.missing = missing
        meps = OpenMeps(1, SLOT_BYTES)
        meps.start_run(RUN, SOURCES)
        meps.open(mep, 0, 0, EVENTS, record.arrived)
        at = 0
        for source, mfp in self.mfps.items():
            if source not in missing:
                self.slot[at : at + len(mfp)] = mfp
                meps.add(mep, source, at, len(mfp), 0)
                at += -(-len(mfp) // 8) * 8
        self.tap.mep_closed(RUN, record)

    def read(self, n: int) -> list[TappedMep]:
        """The next MEPs."""
        found: list[TappedMep] = []
        end = time.monotonic() + 20.0
        while len(found) < n:
            assert time.monotonic() < end
            self.tap.changed()
            if self.reader.poll(20) and (tapped := decode_tapped(self.reader.recv_multipart())) is not None:
                found.append(tapped)
        return found

    def close(self) -> None:
        self.tap.close(0)
        self.context.destroy(linger=0)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


def test_a_closed_mep_is_published_as_built_with_its_missing_sources(bench: Bench) -> None:
    bench.close_mep(1)
    assert bench.counters == TapCounters()
    bench.subscribe()
    bench.close_mep(2)
    bench.close_mep(3, missing=SOURCES[1:2])
    bench.close_mep(4, missing=SOURCES)
    bench.close_mep(5)
    # The slot is filled again at once: what waits is a copy.
    bench.slot[:] = bytes(SLOT_BYTES)
    whole, incomplete, last = bench.read(3)
    assert [each.header.mep for each in (whole, incomplete, last)] == [2, 3, 5]
    assert [each.header.sequence for each in (whole, incomplete, last)] == [0, 1, 2]
    assert bytes(whole.content) == bytes(last.content) == encode_mep(list(bench.mfps.values()))
    assert (whole.header.run, whole.events_per_mep, whole.missing, whole.chain) == (RUN, EVENTS, (), "raw")
    others = [mfp for source, mfp in bench.mfps.items() if source != SOURCES[1]]
    assert bytes(incomplete.content) == encode_mep(others)
    assert incomplete.missing == SOURCES[1:2]


def test_a_reader_that_does_not_read_delays_nothing_and_its_losses_are_counted(bench: Bench) -> None:
    bench.subscribe()
    n = 60
    for mep in range(n):
        bench.close_mep(mep)
    assert bench.counters.dropped > 0
    assert bench.counters.meps + bench.counters.dropped == n
    assert bench.tap._waiting_bytes <= BUFFER_BYTES
    found = [each.header.mep for each in bench.read(bench.counters.meps)]
    assert np.all(np.diff(found) >= 1)
    # A gap in the sequence numbers is what the reader sees of the loss.
    bench.close_mep(n)
    assert bench.read(1)[0].header.sequence == n


def test_a_prescale_publishes_the_meps_whose_id_it_divides() -> None:
    bench = Bench(prescale=3)
    bench.subscribe()
    for mep in range(7):
        bench.close_mep(mep)
    assert [(each.header.mep, each.header.sequence) for each in bench.read(3)] == [(0, 0), (3, 1), (6, 2)]
    assert bench.counters.meps == 3
    bench.close()
