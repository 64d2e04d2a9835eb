"""Frames without permission are refused before they take a place, on the compiled way and on the one through Python."""

import time

import pytest

from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.readout.frame_handler import FrameHandler
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.feeder_messages import Nack, Welcome
from hltnode.protocol.transport.frame_header import VERSION, encode_frame
from tests.daemon.readout.bench import EVENTS, RUN, SECOND, Bench

# Compiled code handles frames of MEPs that are open; with a recorder Python handles all.
WAYS = pytest.mark.parametrize("compiled", [True, False])


def frame_of(mep: int, source: int, token: int, *, run: int = RUN) -> bytes:
    """A frame without any other fault."""
    mfp = encode_mfp(
        source_id=source, event_id=mep * EVENTS, version=1, types=[63] * EVENTS, fragments=[b"x"] * EVENTS, align=3
    )
    return encode_frame(mfp, run=run, mep_id=mep, source_id=source, token=token)


class Node:
    """Feeders a and b send sources 1 and 2. MEP 0 is open: it has the fragment of a."""

    def __init__(self, *, compiled: bool) -> None:
        self.bench = Bench(feeders=2)
        self.bench.hello("a")
        self.bench.hello("b")
        self._buffers = [memoryview(bytearray(8192)) for _ in self.bench.builder.pool.slots]
        self._handler = FrameHandler(
            self.bench.builder,
            self._buffers,
            self.bench.counters,
            self.bench.carry_out,
            self.bench.registry.permissions.refusal,
            self.bench.registry.permissions.answers,
            max_frame_bytes=4096,
            clock=ReadingClock(lambda: self.bench.now),
        )
        self._handler.intake.is_on = compiled
        assert self.send(frame_of(0, 1, self.bench.token("a"))) == {}

    def send(self, frame: bytes) -> dict[RejectReason, int]:
        """Handle a frame as one of shared memory; returns the new refusals."""
        counters = self.bench.counters
        before = dict(counters.fragments_rejected)
        self.bench.connections.sent.clear()
        self._handler.shared_frames_arrived(memoryview(frame), 0, time.monotonic_ns() + SECOND)
        assert closes(accounting(counters, self.bench.builder))
        return {reason: n - before[reason] for reason, n in counters.fragments_rejected.items() if n > before[reason]}

    def refused(self, frame: bytes, reason: RejectReason) -> bool:
        """Whether a frame is refused for this reason, takes no place and gets no answer."""
        builder = self.bench.builder
        before = (dict(builder.open), builder.window.outstanding, builder.fragments_in_build)
        seen = {source: entry.fragments for source, entry in self.bench.counters.sources.items()}
        refusals = self.send(frame)
        assert before == (dict(builder.open), builder.window.outstanding, builder.fragments_in_build)
        # A source is no less silent because of a stranger.
        assert seen == {source: entry.fragments for source, entry in self.bench.counters.sources.items()}
        assert not [message for message in self.bench.connections.take() if isinstance(message, Nack)]
        return refusals == {reason: 1}


@pytest.fixture
def node(compiled: bool) -> Node:
    return Node(compiled=compiled)


@WAYS
@pytest.mark.parametrize("mep", [0, 1, 40])
def test_a_token_that_no_feeder_has_is_refused_for_open_meps_and_meps_to_come(node: Node, mep: int) -> None:
    token = node.bench.token("b")
    for wrong in (0, token ^ 1, token ^ 1 << 63, (1 << 64) - 1):
        assert node.refused(frame_of(mep, 2, wrong), RejectReason.UNKNOWN_TOKEN)
    assert node.send(frame_of(0, 2, token)) == {}
    assert not node.bench.builder.open


@WAYS
def test_an_open_mep_takes_no_fragment_with_another_token_than_the_source_has_sent_before(node: Node) -> None:
    token = node.bench.token("b")
    # Compiled code knows the source by now, and its fragment of MEP 0 is missing.
    assert node.send(frame_of(1, 2, token)) == {}
    for wrong in (0, token ^ 1, token ^ 1 << 63):
        assert node.refused(frame_of(0, 2, wrong), RejectReason.UNKNOWN_TOKEN)
    assert node.refused(frame_of(0, 2, node.bench.token("a")), RejectReason.FOREIGN_SOURCE)
    assert node.send(frame_of(0, 2, token)) == {}


@WAYS
@pytest.mark.parametrize("mep", [0, 1])
def test_the_token_of_another_source_or_of_another_run_is_refused(node: Node, mep: int) -> None:
    token = node.bench.token("a")
    assert node.refused(frame_of(mep, 2, token), RejectReason.FOREIGN_SOURCE)
    assert node.refused(frame_of(mep, 9, token), RejectReason.FOREIGN_SOURCE)
    assert node.refused(frame_of(mep, 1, token, run=RUN + 1), RejectReason.FOREIGN_SOURCE)


@WAYS
def test_the_token_of_a_feeder_ends_with_its_goodbye_and_is_the_same_after_its_next_hello(node: Node) -> None:
    token = node.bench.token("a")
    assert node.send(frame_of(1, 2, node.bench.token("b"))) == {}
    node.bench.leave("a")
    assert node.refused(frame_of(1, 1, token), RejectReason.UNKNOWN_TOKEN)
    node.bench.hello("a")
    assert node.bench.token("a") == token
    assert node.send(frame_of(1, 1, token)) == {}


@WAYS
def test_a_restarted_feeder_gets_another_token_and_the_one_of_its_first_process_ends(node: Node) -> None:
    token = node.bench.token("a")
    node.bench.pass_time(6 * SECOND)
    node.bench.hello("b")
    (welcome,) = (each for each in node.bench.hello("a", session="f2", identity=b"new") if isinstance(each, Welcome))
    assert welcome.token == node.bench.token("a") != token
    assert node.send(frame_of(1, 2, node.bench.token("b"))) == {}
    assert node.refused(frame_of(1, 1, token), RejectReason.UNKNOWN_TOKEN)
    assert node.send(frame_of(1, 1, welcome.token)) == {}


@WAYS
def test_a_silent_feeder_keeps_its_token(node: Node) -> None:
    node.bench.pass_time(50 * SECOND)
    node.bench.hello("b")
    assert node.send(frame_of(1, 1, node.bench.token("a"))) == {}
    assert 1 in node.bench.builder.open


@WAYS
def test_a_feeder_whose_place_another_one_has_taken_sends_nothing_more(node: Node) -> None:
    token = node.bench.token("a")
    node.bench.pass_time(6 * SECOND)
    node.bench.hello("b")
    # The name decides the source: another feeder with the source of a.
    node.bench.hello("alice")
    assert node.refused(frame_of(1, 1, token), RejectReason.UNKNOWN_TOKEN)
    assert node.send(frame_of(1, 1, node.bench.token("alice"))) == {}


@WAYS
def test_ids_beyond_the_credits_are_refused_before_they_take_a_place(node: Node) -> None:
    token, builder = node.bench.token("a"), node.bench.builder
    limit = builder.window.limit
    assert node.send(frame_of(10**6, 1, token)) == {RejectReason.NO_CREDIT: 1}
    for mep in range(1, limit):
        assert node.send(frame_of(mep, 1, token)) == {}
    assert builder.window.outstanding == 0
    before = dict(builder.open)
    assert node.send(frame_of(limit, 1, token)) == {RejectReason.NO_CREDIT: 1}
    assert builder.open == before


@WAYS
def test_a_frame_of_the_first_version_is_refused_by_that_name(node: Node) -> None:
    frame = bytearray(frame_of(0, 2, node.bench.token("b")))
    frame[4:6] = (VERSION - 1).to_bytes(2, "little")
    assert node.refused(bytes(frame), RejectReason.BAD_VERSION)


def test_each_feeder_has_a_token_of_its_own_that_repeated_hellos_do_not_change() -> None:
    bench = Bench(feeders=2)
    first = [message for message in bench.hello("a") if isinstance(message, Welcome)]
    again = [message for message in bench.hello("a") if isinstance(message, Welcome)]
    assert first == again
    bench.hello("b")
    assert 0 not in {bench.token("a"), bench.token("b")}
    assert bench.token("a") != bench.token("b")
