"""What a feeder keeps and sends again."""

from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.feeder.send_window import MAX_RESENDS, PASSED_OVER_NS, RETRY_NS, SendWindow
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.feeder_messages import Nack


def window_with(*meps: int, limit: int = 100) -> SendWindow:
    window = SendWindow()
    for mep in meps:
        window.add(mep, {1: b"%d-1" % mep, 2: b"%d-2" % mep})
    window.credit(limit)
    return window


def drain(window: SendWindow) -> list[bytes]:
    frames = []
    while (frame := window.next_frame()) is not None:
        frames.append(frame)
    return frames


def nack(mep: int, source: int, reason: RejectReason, resend: bool) -> Nack:
    return Nack(run=1, source=source, mep=mep, reason=reason, resend=resend)


def test_frames_go_in_the_order_of_meps_up_to_the_limit() -> None:
    window = window_with(0, 1, 2, 3, limit=2)
    assert drain(window) == [b"0-1", b"0-2", b"1-1", b"1-2"]
    window.credit(3)
    assert drain(window) == [b"2-1", b"2-2"]
    window.acknowledge(1, 1)
    assert drain(window) == [b"3-1", b"3-2"]


def test_a_mep_that_is_revoked_goes_with_its_frames_and_is_not_done_when_the_node_says_so() -> None:
    window = window_with(0, 1)
    assert window.revoke(0) == {1: b"0-1", 2: b"0-2"}
    window.acknowledge(0, 1)
    assert 0 not in window.acked
    assert 1 in window.acked
    assert drain(window) == []


def test_an_acknowledged_mep_is_forgotten_and_not_sent_any_more() -> None:
    window = window_with(0, 1, 2)
    window.acknowledge(0, 1)
    assert drain(window) == [b"2-1", b"2-2"]
    assert window.unacknowledged == 1
    assert window.first_unacknowledged == 2


def test_after_a_restart_everything_unacknowledged_goes_again_once_there_is_credit() -> None:
    window = window_with(0, 1)
    drain(window)
    window.acknowledge(0, 0)
    window.restart()
    assert drain(window) == []
    window.credit(5)
    assert drain(window) == [b"1-1", b"1-2"]
    assert window.resent == 2


def test_a_mep_that_was_acknowledged_before_it_was_made_is_skipped() -> None:
    window = SendWindow()
    window.acknowledge(0, 10**18)
    window.add(0, {1: b"x"})
    assert window.unacknowledged == 0


def test_a_damaged_fragment_is_sent_again_but_not_for_ever() -> None:
    window = window_with(0)
    drain(window)
    damaged = nack(0, 1, RejectReason.BAD_CRC, resend=True)
    for _ in range(MAX_RESENDS):
        window.refuse(0, damaged)
        window.retry(RETRY_NS)
        assert drain(window) == [b"0-1"]
    window.refuse(0, damaged)
    assert window.next_retry_ns is None
    assert window.refused[RejectReason.BAD_CRC] == 1
    assert window.unacknowledged == 1


def test_lack_of_credit_is_waited_out_however_long_it_takes() -> None:
    window = window_with(0)
    drain(window)
    for _ in range(100):
        window.refuse(0, nack(0, 1, RejectReason.NO_CREDIT, resend=True))
        window.retry(RETRY_NS)
        assert drain(window) == [b"0-1"]
    assert not window.refused


def test_a_refused_fragment_is_sent_again_when_its_time_has_come_and_not_before() -> None:
    window = window_with(0)
    drain(window)
    window.refuse(1000, nack(0, 1, RejectReason.NO_CREDIT, resend=True))
    window.refuse(2000, nack(0, 2, RejectReason.NO_CREDIT, resend=True))
    assert window.next_retry_ns == 1000 + RETRY_NS
    window.retry(999 + RETRY_NS)
    assert drain(window) == []
    window.retry(1000 + RETRY_NS)
    assert drain(window) == [b"0-1"]
    assert window.next_retry_ns == 2000 + RETRY_NS


def test_duplicate_and_late_are_kept_until_the_acknowledgement() -> None:
    window = window_with(0)
    for reason in (RejectReason.DUPLICATE, RejectReason.LATE):
        window.refuse(0, nack(0, 1, reason, resend=False))
    assert window.next_retry_ns is None
    assert window.unacknowledged == 1
    assert not window.refused


def test_a_mep_of_which_every_fragment_is_refused_is_forgotten_and_counted() -> None:
    window = window_with(0)
    for source in (1, 2):
        window.refuse(0, nack(0, source, RejectReason.FOREIGN_RUN, resend=False))
    assert window.unacknowledged == 0
    assert window.refused[RejectReason.FOREIGN_RUN] == 2


def test_refusals_of_unknown_fragments_are_ignored() -> None:
    window = window_with(0)
    window.refuse(0, nack(7, 1, RejectReason.BAD_CRC, resend=True))
    window.refuse(0, nack(0, 9, RejectReason.BAD_CRC, resend=True))
    assert window.next_retry_ns is None
    assert not window.refused


@given(st.lists(st.tuples(st.sampled_from(("send", "ack", "restart", "nack")), st.integers(0, 5))))
def test_whatever_happens_a_mep_goes_again_until_it_is_acknowledged(steps: list[tuple[str, int]]) -> None:
    window = window_with(*range(6))
    acked: set[int] = set()
    for step, mep in steps:
        match step:
            case "send":
                window.next_frame()
            case "ack":
                window.acknowledge(mep, mep)
                acked.add(mep)
            case "restart":
                window.restart()
                window.credit(6)
            case _:
                window.refuse(0, nack(mep, 1, RejectReason.NO_CREDIT, resend=True))
                window.retry(RETRY_NS)
    window.restart()
    window.credit(6)
    wanted = [b"%d-%d" % (mep, source) for mep in range(6) if mep not in acked for source in (1, 2)]
    assert drain(window) == wanted


def test_meps_that_the_node_has_passed_over_are_queued_again() -> None:
    window = window_with(0, 1, 2, 3)
    drain(window)
    window.acknowledge(2, 2)
    window.queue_passed_over(0, all_sent=False)
    window.queue_passed_over(PASSED_OVER_NS, all_sent=False)
    assert drain(window) == []
    window.queue_passed_over(PASSED_OVER_NS + 1, all_sent=False)
    assert drain(window) == [b"0-1", b"0-2", b"1-1", b"1-2"]
    for round_ in range(2, 6):
        window.queue_passed_over(round_ * (PASSED_OVER_NS + 1), all_sent=True)
    assert drain(window) == [b"0-1", b"0-2", b"1-1", b"1-2", b"3-1", b"3-2"]
    assert window.resent == 10


def test_the_time_of_a_mep_that_may_be_lost_begins_when_it_becomes_the_oldest() -> None:
    window = window_with(0, 1, 2)
    drain(window)
    window.queue_passed_over(0, all_sent=True)
    window.acknowledge(0, 0)
    window.queue_passed_over(PASSED_OVER_NS + 1, all_sent=True)
    assert drain(window) == []
    window.queue_passed_over(2 * PASSED_OVER_NS + 2, all_sent=True)
    assert drain(window) == [b"1-1", b"1-2", b"2-1", b"2-2"]
