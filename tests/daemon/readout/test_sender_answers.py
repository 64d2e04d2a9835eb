"""Frames that are refused for their sender cost no Python after the first: compiled code remembers the answers."""

import time
from collections.abc import Callable, Sequence
from random import Random

import pytest
import structlog

from hltnode.daemon._native import SenderAnswers
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.readout.frame_handler import FrameHandler
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.feeder_messages import Hello, Nack
from hltnode.protocol.transport.frame_header import encode_frame
from hltnode.protocol.transport.shared_memory import FRAME_ALIGNMENT
from tests.daemon.readout.bench import EVENTS, MS, RUN, SECOND, Bench, nacks

N = 1000
OTHER_TOKEN = 12345
MOST_WITH_SOURCES = 1024
"""Tokens for which compiled code remembers sources."""


def frame_of(mep: int = 0, source: int = 1, token: int = OTHER_TOKEN, run: int = RUN) -> bytes:
    mfp = encode_mfp(
        source_id=source, event_id=mep * EVENTS, version=1, types=[63] * EVENTS, fragments=[b"x"] * EVENTS, align=3
    )
    return encode_frame(mfp, run=run, mep_id=mep, source_id=source, token=token)


class Site:
    """Feeders a and b with sources 1 and 2. `in_python` counts the frames that Python handles."""

    def __init__(self, copy_threads: int = 1) -> None:
        self.bench = Bench(feeders=2)
        self.bench.hello("a")
        self.bench.hello("b")
        self.permissions = self.bench.registry.permissions
        self.clock = ReadingClock(lambda: self.bench.now)
        self.handler = FrameHandler(
            self.bench.builder,
            [memoryview(bytearray(8192)) for _ in self.bench.builder.pool.slots],
            self.bench.counters,
            self.bench.carry_out,
            self.permissions.refusal,
            self.permissions.answers,
            max_frame_bytes=4096,
            clock=self.clock,
            copy_threads=copy_threads,
        )
        self.in_python = 0
        arrived = self.handler.frame_arrived

        def counted(frame: bytes, *, is_shared: bool = False) -> bool:
            self.in_python += 1
            return arrived(frame, is_shared=is_shared)

        self.handler.frame_arrived = counted  # type: ignore[method-assign, assignment]

    def send(self, frames: Sequence[bytes]) -> dict[RejectReason, int]:
        """Handle frames as a range of shared memory; returns the new refusals."""
        counters = self.bench.counters
        before, received = dict(counters.fragments_rejected), counters.fragments_received
        nbytes = counters.fragment_bytes_received
        whole = b"".join(frame.ljust(-(-len(frame) // FRAME_ALIGNMENT) * FRAME_ALIGNMENT, b"\0") for frame in frames)
        self.handler.begin_turn()
        at = self.handler.shared_frames_arrived(memoryview(whole), 0, time.monotonic_ns() + 60 * SECOND)
        assert at == len(whole)
        assert counters.fragments_received - received == len(frames)
        assert counters.fragment_bytes_received - nbytes == sum(map(len, frames))
        assert closes(accounting(counters, self.bench.builder))
        return {reason: n - before[reason] for reason, n in counters.fragments_rejected.items() if n > before[reason]}


def random_tokens(_site: Site, rng: Random) -> list[bytes]:
    return [frame_of(rng.getrandbits(40), rng.getrandbits(16), rng.getrandbits(64)) for _ in range(N)]


def other_runs(site: Site, rng: Random) -> list[bytes]:
    return [
        frame_of(rng.getrandbits(40), 1, site.bench.token("a"), run=RUN + 1 + rng.getrandbits(20)) for _ in range(N)
    ]


def other_sources(site: Site, rng: Random) -> list[bytes]:
    return [frame_of(rng.getrandbits(40), 2 + rng.getrandbits(15), site.bench.token("a")) for _ in range(N)]


def ended_token(site: Site, rng: Random) -> list[bytes]:
    token = site.bench.token("a")
    site.bench.leave("a")
    return [frame_of(rng.getrandbits(40), rng.getrandbits(16), token, run=rng.getrandbits(32)) for _ in range(N)]


@pytest.mark.parametrize("copy_threads", [1, 3])
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (random_tokens, RejectReason.UNKNOWN_TOKEN),
        (other_runs, RejectReason.FOREIGN_SOURCE),
        (other_sources, RejectReason.FOREIGN_SOURCE),
        (ended_token, RejectReason.UNKNOWN_TOKEN),
    ],
)
def test_a_thousand_frames_without_permission_are_counted_and_reach_python_once(
    make: Callable[[Site, Random], list[bytes]], reason: RejectReason, copy_threads: int
) -> None:
    site = Site(copy_threads)
    assert site.send(make(site, Random(1))) == {reason: N}
    assert site.in_python == 1
    assert not site.bench.builder.open


@pytest.mark.parametrize("copy_threads", [1, 3])
def test_a_thousand_frames_without_a_readable_header_reach_python_never(copy_threads: int) -> None:
    site = Site(copy_threads)
    bad_magic = b"x" + frame_of()[1:]
    bad_version = bytearray(frame_of())
    bad_version[4] ^= 1
    assert site.send([bad_magic] * N) == {RejectReason.BAD_MAGIC: N}
    assert site.send([bytes(bad_version)] * N) == {RejectReason.BAD_VERSION: N}
    assert site.in_python == 0


def test_refused_frames_between_those_of_a_feeder_change_nothing_for_it() -> None:
    alone, beside = Site(3), Site(3)
    for site in (alone, beside):
        for name, source in (("a", 1), ("b", 2)):
            assert site.send([frame_of(0, source, site.bench.token(name))]) == {}
    rng, meps = Random(3), range(1, 12)
    for site in (alone, beside):
        frames = [
            frame_of(mep, source, site.bench.token(name)) for mep in meps for name, source in (("a", 1), ("b", 2))
        ]
        damaged = bytearray(frames[3])
        damaged[-1] ^= 1
        frames.insert(3, bytes(damaged))
        if site is beside:
            for _ in range(40):
                frames.insert(rng.randrange(len(frames)), frame_of(5, 1, OTHER_TOKEN))
        refused = site.send(frames)
        assert refused.pop(RejectReason.UNKNOWN_TOKEN, 0) == (40 if site is beside else 0)
        assert refused == {RejectReason.BAD_CRC: 1}
    assert beside.bench.counters.fragments_built == alone.bench.counters.fragments_built == 24
    seen = [{source: of.fragments for source, of in site.bench.counters.sources.items()} for site in (alone, beside)]
    assert seen[0] == seen[1]


def test_a_token_that_gets_permission_is_accepted_at_once() -> None:
    site = Site()
    token = site.bench.token("a")
    site.bench.leave("a")
    assert site.send([frame_of(0, 1, token)] * 3) == {RejectReason.UNKNOWN_TOKEN: 3}
    assert site.in_python == 1
    site.bench.hello("a")
    assert site.send([frame_of(0, 1, token)]) == {}
    assert 0 in site.bench.builder.open


def test_a_source_that_a_feeder_takes_back_is_accepted_from_it_alone_at_once() -> None:
    """Its token and the sources of its hello stay the same all the time."""
    bench = Bench(feeders=2)
    run, permissions = bench.registry.begin(RUN), bench.registry.permissions
    first, second = (
        bench.registry.hello(now_ns, name.encode(), run, make_hello(name, sources), bench.acknowledgements.done(RUN))
        for now_ns, name, sources in ((0, "first", (1, 2)), (100 * SECOND, "second", (2,)))
    )
    assert permissions.refusal(first.token, RUN, 2) is RejectReason.FOREIGN_SOURCE
    assert permissions.refusal(second.token, RUN, 2) is None
    permissions.answers.permit(2, second.token)
    bench.registry.hello(200 * SECOND, b"first", run, first.hello, bench.acknowledgements.done(RUN))
    assert permissions.refusal(first.token, RUN, 2) is None
    assert permissions.answers.refusal(first.token, RUN, 2) is None
    assert not permissions.answers.permits(2, second.token)


def make_hello(name: str, sources: tuple[int, ...]) -> Hello:
    return Hello(name, "s", RUN, sources, 0, EVENTS, 1000, False)


def test_each_change_of_feeders_has_the_rule_asked_again() -> None:
    site = Site()
    assert site.send([frame_of()] * 3) == {RejectReason.UNKNOWN_TOKEN: 3}
    site.bench.leave("b")
    assert site.send([frame_of()] * 3) == {RejectReason.UNKNOWN_TOKEN: 3}
    assert site.in_python == 2


def test_the_log_has_an_example_of_each_reason_and_the_number_of_others() -> None:
    site = Site()
    with structlog.testing.capture_logs() as lines:
        site.send([frame_of(7, 3), *[frame_of(8, 4)] * 9])
        site.send([b"x" + frame_of()[1:]] * 5)
        site.bench.now += 11 * SECOND
        site.clock.wakes_ns = site.bench.now
        site.send([frame_of(9, 5)] * 4)
    assert [{key: line[key] for key in ("event", "reason", "left_out")} for line in lines] == [
        {"event": "fragment_rejected", "reason": "unknown_token", "left_out": 0},
        {"event": "frame_unreadable", "reason": "bad_magic", "left_out": 4},
        {"event": "fragment_rejected", "reason": "unknown_token", "left_out": 9 + 3},
    ]
    assert [(line["run"], line["source"], line["mep"]) for line in lines if "source" in line] == [
        (RUN, 3, 7),
        (RUN, 5, 9),
    ]
    assert "magic 0x464E4C48 expected, 0x464E4C78 found" in lines[1]["text"]


def test_answers_apply_to_held_tokens_only_and_none_is_given_before_the_rule_has_answered() -> None:
    answers = SenderAnswers()
    answers.hold(7)
    for token in (7, 8):
        assert answers.refusal(token, RUN, 1) is None
    answers.refuse_unheld()
    assert answers.refusal(8, RUN, 1) == "unknown_token"
    assert answers.refusal(7, RUN, 1) is None
    answers.refuse_other_runs(7, RUN)
    assert answers.refusal(7, RUN + 1, 1) == "foreign_source"
    assert answers.refusal(7, RUN, 1) is None
    answers.refuse_other_sources(7, [1, 65_535])
    sources = [source for source in range(1 << 16) if answers.refusal(7, RUN, source) is None]
    assert sources == [1, 65_535]
    answers.refuse_token(7)
    assert answers.refusal(7, RUN, 1) == "unknown_token"
    answers.release(7)
    answers.hold(7)
    assert answers.refusal(7, RUN + 1, 2) is None
    answers.forget()
    assert answers.refusal(8, RUN, 1) is None


def test_answers_for_tokens_that_no_feeder_has_take_no_memory() -> None:
    answers = SenderAnswers()
    for token in range(1, 2 * MOST_WITH_SOURCES):
        answers.refuse_token(token)
        answers.refuse_other_runs(token, RUN)
        answers.refuse_other_sources(token, [1])
    answers.hold(5)
    assert answers.refusal(5, RUN + 1, 2) is None


def test_sources_are_remembered_for_a_bounded_number_of_tokens() -> None:
    answers = SenderAnswers()
    for token in range(1, MOST_WITH_SOURCES + 2):
        answers.hold(token)
        answers.refuse_other_sources(token, [1])
        answers.refuse_other_sources(token, [1])
        if token <= MOST_WITH_SOURCES:
            assert answers.refusal(1, RUN, 2) == "foreign_source"
    # The next one takes the place of all.
    assert answers.refusal(1, RUN, 2) is None
    assert answers.refusal(MOST_WITH_SOURCES + 1, RUN, 2) == "foreign_source"


def with_closed_meps(copy_threads: int) -> tuple[Site, int]:
    """MEP 0 is acknowledged, MEP 1 is open with the fragment of a. Returns the token of a."""
    site = Site(copy_threads)
    token = site.bench.token("a")
    assert site.send([frame_of(0, 1, token), frame_of(0, 2, site.bench.token("b"))]) == {}
    site.bench.work()
    assert site.send([frame_of(1, 1, token)]) == {}
    site.in_python = 0
    site.bench.connections.sent.clear()
    return site, token


@pytest.mark.parametrize("copy_threads", [1, 3])
@pytest.mark.parametrize("mep", [0, 1])
def test_a_thousand_copies_of_a_fragment_are_answered_once(mep: int, copy_threads: int) -> None:
    site, token = with_closed_meps(copy_threads)
    assert site.send([frame_of(mep, 1, token)] * N) == {RejectReason.DUPLICATE: N}
    assert site.in_python == 1
    refusals = nacks(site.bench.connections.take())
    assert refusals == [Nack(RUN, 1, mep, RejectReason.DUPLICATE, False)]
    assert site.bench.counters.sources[1].fragments == N + 2


@pytest.mark.parametrize("copy_threads", [1, 3])
@pytest.mark.parametrize("mep", [0, 1])
def test_a_thousand_damaged_copies_of_a_fragment_ask_for_nothing(mep: int, copy_threads: int) -> None:
    """Their feeder must neither send the fragment again nor count it as lost."""
    site, token = with_closed_meps(copy_threads)
    damaged = bytearray(frame_of(mep, 1, token))
    damaged[-1] ^= 1
    unreadable_mfp = bytearray(frame_of(mep, 1, token))
    unreadable_mfp[48] ^= 1
    assert site.send([bytes(damaged), bytes(unreadable_mfp)] * (N // 2)) == {RejectReason.BAD_CRC: N}
    assert site.in_python == 1
    assert nacks(site.bench.connections.take()) == []


def test_a_copy_after_damaged_ones_is_told_to_its_feeder() -> None:
    site, token = with_closed_meps(1)
    damaged = bytearray(frame_of(1, 1, token))
    damaged[-1] ^= 1
    sound = frame_of(1, 1, token)
    assert site.send([bytes(damaged)] * 3 + [sound] * 3 + [bytes(damaged)] * 3) == {
        RejectReason.BAD_CRC: 6,
        RejectReason.DUPLICATE: 3,
    }
    assert site.in_python == 2
    assert nacks(site.bench.connections.take()) == [Nack(RUN, 1, 1, RejectReason.DUPLICATE, False)]


def test_each_damaged_fragment_that_is_missing_is_asked_for_again() -> None:
    site, _ = with_closed_meps(1)
    for mep in (1, 2):
        damaged = bytearray(frame_of(mep, 2, site.bench.token("b")))
        damaged[-1] ^= 1
        site.bench.connections.sent.clear()
        assert site.send([bytes(damaged)] * 3) == {RejectReason.BAD_CRC: 3}
        assert nacks(site.bench.connections.take()) == [Nack(RUN, 2, mep, RejectReason.BAD_CRC, True)] * 3


def test_a_fragment_of_a_late_mep_is_refused_as_late_and_as_damaged_by_turns() -> None:
    site, token = with_closed_meps(1)
    # MEP 1 is closed without the source of b.
    for _ in range(20):
        site.bench.pass_time(100 * MS)
    assert not site.bench.builder.open
    sound = frame_of(1, 2, site.bench.token("b"))
    damaged = bytearray(sound)
    damaged[-1] ^= 1
    assert site.send([sound, bytes(damaged)] * N) == {RejectReason.LATE: N, RejectReason.BAD_CRC: N}
    assert site.in_python == 1
    assert site.send([frame_of(1, 1, token)]) == {RejectReason.DUPLICATE: 1}


def test_copies_are_answered_again_after_each_change_of_meps_and_in_each_turn() -> None:
    site, token = with_closed_meps(1)
    copy = frame_of(0, 1, token)
    # MEP 2 is opened between the copies.
    assert site.send([copy, copy, frame_of(2, 1, token), copy, copy]) == {RejectReason.DUPLICATE: 4}
    assert site.in_python == 3
    # MEP 1 is closed between them, in compiled code.
    assert site.send([copy, copy, frame_of(1, 2, site.bench.token("b")), copy, copy]) == {RejectReason.DUPLICATE: 4}
    assert site.in_python == 5
    site.bench.now += 30 * MS
    site.bench.connections.sent.clear()
    assert site.send([copy]) == {RejectReason.DUPLICATE: 1}
    assert len(nacks(site.bench.connections.take())) == 1
