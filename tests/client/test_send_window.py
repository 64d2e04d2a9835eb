"""Send window of a feeder: frames that it keeps and sends again."""

import time

from hypothesis import given
from hypothesis import strategies as st

from hltnode.client.refused_fragments import RefusedCount, RefusedFragments
from hltnode.client.send_window import MAX_RESENDS, RETRY_NS, SendWindow
from hltnode.client.silent_meps import OVERTAKEN_NS, UNHEARD_NS, SilentMeps
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.feeder_messages import Nack
from tests.client.sending import send_next


def window_with(*meps: int, limit: int = 100) -> SendWindow:
    window = SendWindow()
    for mep in meps:
        window.add(mep, {1: b"%d-1" % mep, 2: b"%d-2" % mep})
    window.credit(limit)
    return window


def drain(window: SendWindow, now_ns: int = 0) -> list[bytes]:
    frames = []
    while (frame := send_next(window, now_ns)) is not None:
        frames.append(bytes(frame))
    return frames


def test_frames_that_did_not_fit_are_the_next_ones() -> None:
    window = SendWindow()
    window.add(0, {source: b"%d" % source for source in range(6)})
    window.credit(1)
    first = window.next_frames(4)
    assert first.frames == [b"0", b"1", b"2", b"3"]
    window.sent(0, first, 3)
    assert drain(window) == [b"3", b"4", b"5"]


def test_frames_come_from_one_mep_at_a_time_and_only_against_credits() -> None:
    window = window_with(0, 1, 2, limit=2)
    for expected in ([b"0-1", b"0-2"], [b"1-1", b"1-2"], []):
        found = window.next_frames(10)
        assert found.frames == expected
        window.sent(0, found, len(found.frames))


def nack(mep: int, source: int, reason: RejectReason, resend: bool) -> Nack:
    return Nack(run=1, source=source, mep=mep, reason=reason, resend=resend)


def test_acknowledged_ids_between_those_of_other_nodes_become_one_range() -> None:
    window = window_with(*range(0, 2000, 2), limit=2000)
    window.in_order = True
    for mep in range(0, 2000, 2):
        window.acknowledge(mep, mep)
    window.confirm_below(0)
    assert len(window.acked.ranges()) == 1000
    window.confirm_below(1500)
    assert window.acked.ranges()[0] == (0, 1500)
    assert len(window.acked.ranges()) == 250
    alone = window_with(2)
    alone.acknowledge(2, 2)
    alone.confirm_below(3)
    assert alone.acked.ranges() == [(2, 2)], "MEPs in another order may still come"


def test_frames_go_in_the_order_of_meps_up_to_the_limit() -> None:
    window = window_with(0, 1, 2, 3, limit=2)
    assert drain(window) == [b"0-1", b"0-2", b"1-1", b"1-2"]
    window.credit(3)
    assert drain(window) == [b"2-1", b"2-2"]
    window.acknowledge(1, 1)
    assert drain(window) == [b"3-1", b"3-2"]


def test_a_revoked_mep_leaves_with_its_frames_and_an_acknowledgement_does_not_complete_it() -> None:
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
    assert RefusedFragments.count([window.refused]) == {"bad_crc": RefusedCount(fragments=1, meps=1)}
    assert window.unacknowledged == 1


def test_lack_of_credit_is_waited_out_however_long_it_takes() -> None:
    window = window_with(0)
    drain(window)
    for _ in range(100):
        window.refuse(0, nack(0, 1, RejectReason.NO_CREDIT, resend=True))
        window.retry(RETRY_NS)
        assert drain(window) == [b"0-1"]
    assert not window.refused


def test_a_mep_without_place_on_the_node_yields_to_meps_that_others_have_started() -> None:
    window = window_with(0, 1, 2, 3, limit=2)
    assert drain(window) == [b"0-1", b"0-2", b"1-1", b"1-2"]
    for mep in (0, 1):
        for source in (1, 2):
            window.refuse(0, nack(mep, source, RejectReason.NO_CREDIT, resend=True))
    assert drain(window) == [b"2-1", b"2-2", b"3-1", b"3-2"]
    window.retry(RETRY_NS)
    assert drain(window) == []
    window.acknowledge(2, 2)
    assert sorted(drain(window)) == [b"0-1", b"0-2"]
    window.acknowledge(3, 3)
    assert sorted(drain(window)) == [b"1-1", b"1-2"]


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


def refused_and_queued(*meps: int) -> SendWindow:
    """A window whose first fragments the node has refused; they wait for their repetition."""
    window = window_with(*meps)
    drain(window)
    for mep in meps:
        window.refuse(0, nack(mep, 1, RejectReason.BAD_CRC, resend=True))
    return window


def test_a_fragment_refused_before_a_restart_is_not_refused_by_an_acknowledgement_after_it() -> None:
    window = refused_and_queued(0)
    window.restart()
    window.acknowledge(0, 0)
    assert not window.refused
    assert window.unacknowledged == 0


def test_a_fragment_refused_in_a_mep_that_the_node_holds_by_now_is_not_refused() -> None:
    window = refused_and_queued(0)
    window.hold(0, 0)
    window.acknowledge(0, 0)
    assert not window.refused


def test_a_fragment_that_was_sent_again_after_its_refusal_is_not_refused() -> None:
    window = refused_and_queued(0, 1)
    window.retry(RETRY_NS)
    assert drain(window, RETRY_NS) == [b"0-1", b"1-1"]
    window.acknowledge(0, 1)
    assert not window.refused


def test_of_two_meps_the_one_closed_before_the_repetition_counts() -> None:
    window = refused_and_queued(0, 1)
    window.acknowledge(1, 1)
    assert RefusedFragments.count([window.refused]) == {"bad_crc": RefusedCount(fragments=1, meps=1)}
    assert window.unacknowledged == 1


def test_a_mep_with_only_refused_fragments_is_forgotten_and_counted() -> None:
    window = window_with(0)
    for source in (1, 2):
        window.refuse(0, nack(0, source, RejectReason.UNKNOWN_SOURCE, resend=False))
    assert window.unacknowledged == 0
    assert RefusedFragments.count([window.refused]) == {"unknown_source": RefusedCount(fragments=2, meps=1)}


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
                send_next(window, 0)
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


HUGE = 2**63 - 10
SECOND = 10**9


def test_a_fragment_that_a_later_one_overtook_is_sent_again_for_any_id() -> None:
    window = window_with(HUGE, HUGE + 1, HUGE + 2, limit=3)
    frames = drain(window)
    window.acknowledge(HUGE + 1, HUGE + 1)
    window.queue_lost(0)
    window.queue_lost(OVERTAKEN_NS - 1)
    assert drain(window) == []
    window.queue_lost(OVERTAKEN_NS)
    assert drain(window) == frames[:2]
    assert window.resent == 2


def test_only_a_mep_before_the_last_frame_that_has_arrived_is_lost() -> None:
    silent = SilentMeps()
    for mep in (1, 2):
        silent.sent(mep, turn=4 + mep, now_ns=0)
    silent.arrived(5)
    assert silent.lost(0) == []
    assert silent.lost(OVERTAKEN_NS) == []
    silent.arrived(6)
    assert silent.lost(OVERTAKEN_NS) == []
    assert silent.lost(2 * OVERTAKEN_NS) == [1]


def test_when_all_meps_with_credit_are_lost_one_is_resent_and_its_arrival_reveals_the_others() -> None:
    meps = range(1000, 1100)
    window = window_with(*meps, limit=100)
    frames = drain(window)
    window.queue_lost(UNHEARD_NS - 1)
    assert drain(window) == []
    window.queue_lost(UNHEARD_NS)
    assert drain(window, UNHEARD_NS) == frames[-2:]
    window.hold(1099, 1099)
    window.queue_lost(UNHEARD_NS + SECOND)
    assert drain(window) == []
    window.queue_lost(UNHEARD_NS + SECOND + OVERTAKEN_NS)
    assert drain(window) == frames[:-2]


def test_what_the_node_holds_is_not_sent_again_nor_what_has_not_come_to_it_yet() -> None:
    window = window_with(*range(50))
    drain(window)
    for second in range(600):
        window.hold(0, min(49, second // 10))
        window.queue_lost(second * SECOND)
        if second // 10 < 49:
            # In flight; only after a long time one MEP is sent again, to test whether messages arrive.
            assert all(frame.startswith(b"49-") for frame in drain(window, second * SECOND))
        else:
            assert drain(window, second * SECOND) == []
    assert window.unacknowledged == 50
    assert window.resent <= 2 * 500 // (UNHEARD_NS // SECOND)


def test_what_the_node_says_to_hold_does_not_go_although_it_was_about_to() -> None:
    window = window_with(0, 1)
    frames = drain(window)
    window.refuse(0, nack(0, 2, RejectReason.NO_CREDIT, resend=True))
    window.acknowledge(1, 1)
    window.queue_lost(0)
    window.retry(RETRY_NS)
    assert drain(window) == [frames[1]]
    window.queue_lost(OVERTAKEN_NS)
    window.queue_lost(2 * OVERTAKEN_NS)
    window.hold(0, 0)
    assert drain(window) == []


def test_a_mep_that_was_refused_in_part_is_completed_before_others_and_without_another_credit() -> None:
    """A slot became free between its fragments: the node waits for the first one."""
    window = window_with(0, 1, 2, limit=1)
    assert drain(window) == [b"0-1", b"0-2"]
    window.refuse(0, nack(0, 1, RejectReason.NO_CREDIT, resend=True))
    assert drain(window) == [b"1-1", b"1-2"]
    window.retry(RETRY_NS)
    assert drain(window, RETRY_NS) == [b"0-1"]
    # Its place counts: one MEP more than the credits is there.
    window.acknowledge(0, 0)
    assert drain(window) == []
    window.acknowledge(1, 1)
    assert drain(window) == [b"2-1", b"2-2"]


def test_a_mep_that_was_refused_as_a_whole_waits_for_a_credit_behind_the_others() -> None:
    window = window_with(0, 1, 2, limit=1)
    drain(window)
    for source in (1, 2):
        window.refuse(0, nack(0, source, RejectReason.NO_CREDIT, resend=True))
    window.retry(RETRY_NS)
    assert drain(window, RETRY_NS) == [b"1-1", b"1-2"]
    window.acknowledge(1, 1)
    assert drain(window, RETRY_NS) == [b"2-1", b"2-2"]
    window.acknowledge(2, 2)
    assert sorted(drain(window, RETRY_NS)) == [b"0-1", b"0-2"]


def test_after_a_lost_connection_fragments_held_by_the_same_session_still_count() -> None:
    window = window_with(0, 1, 2, limit=2)
    frames = drain(window)
    window.hold(0, 0)
    window.stop()
    window.restart(keeps_held=True)
    window.credit(2)
    assert drain(window) == frames[2:4]
    window.restart()
    window.credit(2)
    assert drain(window) == frames[:4]


def test_a_mep_that_comes_back_to_this_node_does_not_stop_those_that_have_begun() -> None:
    window = window_with(10, 11, limit=2)
    drain(window)
    window.add(5, {1: b"5-1"})
    window.queue_lost(UNHEARD_NS)
    assert drain(window, UNHEARD_NS) == [b"11-1", b"11-2"]
    window.acknowledge(10, 10)
    assert drain(window, UNHEARD_NS) == [b"5-1"]


def test_nothing_is_sent_between_a_lost_connection_and_the_restart() -> None:
    window = window_with(0, 1)
    send_next(window, 0)
    window.stop()
    assert drain(window) == []
    window.restart()
    window.credit(2)
    assert drain(window) == [b"0-1", b"0-2", b"1-1", b"1-2"]


def test_a_late_fragment_is_not_accepted_and_counts_once_with_its_mep() -> None:
    window = window_with(0, 1)
    drain(window)
    for source in (1, 2, 2):
        window.refuse(0, nack(0, source, RejectReason.LATE, resend=False))
    window.acknowledge(0, 1)
    window.refuse(0, nack(1, 1, RejectReason.LATE, resend=False))
    assert RefusedFragments.count([window.refused]) == {"late": RefusedCount(fragments=3, meps=2)}


def test_a_late_fragment_of_an_earlier_session_of_the_node_may_have_been_accepted() -> None:
    window = window_with(0, 1)
    drain(window)
    window.acknowledge(0, 0)
    window.restart()
    window.refuse(0, nack(0, 1, RejectReason.LATE, resend=False))
    assert not window.refused


def test_a_refused_fragment_whose_mep_was_closed_before_its_retry_counts() -> None:
    window = window_with(0)
    drain(window)
    window.refuse(0, nack(0, 2, RejectReason.NO_CREDIT, resend=True))
    window.acknowledge(0, 0)
    assert RefusedFragments.count([window.refused]) == {"no_credit": RefusedCount(fragments=1, meps=1)}


def test_a_mep_that_several_feeders_had_refused_counts_once() -> None:
    windows = [window_with(0), window_with(0, 1)]
    for window in windows:
        drain(window)
        window.refuse(0, nack(0, 1, RejectReason.MALFORMED, resend=False))
    windows[1].refuse(0, nack(1, 2, RejectReason.MALFORMED, resend=False))
    counts = RefusedFragments.count(window.refused for window in windows)
    assert counts == {"malformed": RefusedCount(fragments=3, meps=2)}


def test_an_acknowledged_mep_can_go_to_another_node_until_it_is_released() -> None:
    window = window_with(0, 1)
    window.retains = True
    window.acknowledge(0, 1)
    assert window.unacknowledged == 0
    window.release(1)
    assert window.revoke(1) == {}
    assert window.revoke(0) == {1: b"0-1", 2: b"0-2"}
    assert 0 not in window.acked
    assert 0 in window.revoked
    assert not window.retained


def test_a_mep_acknowledged_here_is_kept_until_the_other_connection_hears_of_it() -> None:
    window = window_with()
    window.retains = True
    window.acknowledge(0, 5)
    window.add(3, {1: b"3-1"})
    assert 3 in window
    window.acknowledge(3, 3)
    assert window.revoke(3) == {1: b"3-1"}


def test_a_fragment_of_a_revoked_mep_is_resent_until_the_feeder_knows_its_new_node() -> None:
    window = window_with(0)
    drain(window)
    for now_ns in (0, 10**9):
        window.refuse(now_ns, Nack(7, 1, 0, RejectReason.REVOKED, True))
        window.retry(now_ns + RETRY_NS)
        assert drain(window, now_ns) == [b"0-1"]
    window.refuse(0, Nack(7, 1, 0, RejectReason.REVOKED, True))
    assert window.revoke(0)
    window.retry(10**12)
    assert drain(window) == []
    assert not window.refused


def test_thousands_of_kept_meps_cost_no_time_per_acknowledgement() -> None:
    def seconds(kept: int) -> float:
        window = window_with(*range(kept), limit=kept)
        drain(window)
        begin = time.thread_time()
        for mep in range(500):
            window.acknowledge(mep, mep)
            window.queue_lost(0)
            assert window.first_unacknowledged == mep + 1
            send_next(window, 0)
        return time.thread_time() - begin

    few = min(seconds(1000) for _ in range(3))
    assert min(seconds(64_000) for _ in range(3)) < 8 * few + 0.01


def test_a_fragment_missing_in_a_closed_mep_counts_once_even_if_acknowledged_before() -> None:
    window = window_with(0, 1)
    window.miss(1, 1, 1)
    window.miss(1, 1, 1)
    window.acknowledge(0, 1)
    assert RefusedFragments.count([window.refused]) == {"late": RefusedCount(fragments=1, meps=1)}


def test_a_fragment_that_was_refused_for_another_reason_before_counts_for_that_one() -> None:
    window = window_with(0)
    drain(window)
    window.refuse(0, nack(0, 1, RejectReason.OVERSIZED, resend=False))
    window.miss(1, 0, 0)
    window.refuse(0, nack(0, 1, RejectReason.LATE, resend=False))
    assert RefusedFragments.count([window.refused]) == {"oversized": RefusedCount(fragments=1, meps=1)}


def test_a_mep_closed_before_it_is_made_here_counts_only_when_it_is_made() -> None:
    window = window_with(0)
    window.miss(1, 1, 10**18)
    window.acknowledge(0, 10**18)
    assert not window.refused
    window.add(1, {1: b"x"})
    assert window.unacknowledged == 0
    assert RefusedFragments.count([window.refused]) == {"late": RefusedCount(fragments=1, meps=1)}


def test_a_fragment_missing_at_one_node_does_not_count_when_another_node_gets_the_mep() -> None:
    window = window_with(0, 1)
    drain(window)
    window.miss(1, 0, 1)
    window.refuse(0, nack(0, 2, RejectReason.LATE, resend=False))
    window.revoke(0)
    assert RefusedFragments.count([window.refused]) == {"late": RefusedCount(fragments=1, meps=1)}
    window.add(0, {1: b"x"})
    assert RefusedFragments.count([window.refused]) == {"late": RefusedCount(fragments=1, meps=1)}


def test_meps_that_an_earlier_session_has_sent_are_counted_and_not_sent() -> None:
    window = SendWindow()
    window.acknowledge(0, 1)
    for mep in range(3):
        window.add(mep, {1: b"frame"})
    assert (window.acknowledged_before, window.meps()) == (2, [2])
