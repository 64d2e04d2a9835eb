"""Injected faults: each has the named effect, is counted, and is reproducible with the same seed."""

from collections import Counter

import pytest

from hltnode.client.fault_injection import DELAY_NS, MAX_OVERTAKERS, REORDER_NS, Fault, FaultInjector, FaultPlan
from hltnode.client.fault_injection import FaultSpecError as SpecError

FRAMES = [number.to_bytes(8, "little") for number in range(2000)]


def through(injector: FaultInjector, frames: list[bytes] = FRAMES, step_ns: int = 1000) -> list[bytes]:
    """The sent frames for these frames, held ones included, one frame per step of time."""
    now = 0
    out: list[bytes] = []
    for frame in frames:
        now += step_ns
        out += map(bytes, injector.take(now, frame))
    while (due := injector.next_due_ns) is not None:
        out += map(bytes, injector.due(due))
    return out


def test_a_specification_names_its_faults() -> None:
    plan = FaultPlan.parse("drop=0.01, duplicate=0.02,reorder=0.05,corrupt=0.001,delay=0.03,kill-after=1000")
    assert plan == FaultPlan(drop=0.01, duplicate=0.02, reorder=0.05, corrupt=0.001, delay=0.03, kill_after=1000)


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ("explode=1", "NAME of drop"),
        ("drop", "NAME=VALUE"),
        ("", "NAME=VALUE"),
        ("drop=2", "from 0 to 1"),
        ("drop=nan", "from 0 to 1"),
        ("drop=often", "not 'often'"),
        ("kill-after=0", "number of fragments"),
        ("kill-after=1.5", "number of fragments"),
        ("drop=0.1,drop=0.2", "given twice"),
    ],
)
def test_a_specification_that_makes_no_sense_is_refused_with_its_part(specification: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        FaultPlan.parse(specification)


def test_without_faults_frames_pass_as_they_are() -> None:
    assert through(FaultInjector(FaultPlan(), 1)) == FRAMES


def test_dropped_frames_do_not_leave_and_are_counted() -> None:
    injector = FaultInjector(FaultPlan(drop=0.1), 1)
    out = through(injector)
    assert len(out) == len(FRAMES) - injector.counts[Fault.DROP]
    assert 120 < injector.counts[Fault.DROP] < 280


def test_duplicated_frames_leave_twice() -> None:
    injector = FaultInjector(FaultPlan(duplicate=0.1), 1)
    times = Counter(through(injector))
    assert set(times) == set(FRAMES)
    assert sum(n == 2 for n in times.values()) == injector.counts[Fault.DUPLICATE] > 100


def test_reordered_frames_are_overtaken_by_a_few_and_never_lost() -> None:
    injector = FaultInjector(FaultPlan(reorder=0.1), 1)
    out = through(injector)
    assert out != FRAMES
    assert sorted(out) == sorted(FRAMES)
    places = {frame: place for place, frame in enumerate(out)}
    assert max(abs(places[frame] - number) for number, frame in enumerate(FRAMES)) <= 2 * MAX_OVERTAKERS


def test_a_reordered_frame_leaves_once_when_it_is_overtaken_before_its_time() -> None:
    injector = FaultInjector(FaultPlan(reorder=1.0), 1)
    out = [bytes(each) for frame in FRAMES[:100] for each in injector.take(0, frame)]
    assert len(out) == len(set(out)) >= 100 - MAX_OVERTAKERS


def test_a_reordered_frame_without_followers_leaves_after_its_time() -> None:
    injector = FaultInjector(FaultPlan(reorder=1.0), 1)
    assert injector.take(0, b"only one") == []
    assert injector.next_due_ns == REORDER_NS
    assert injector.due(REORDER_NS - 1) == []
    assert injector.due(REORDER_NS) == [b"only one"]
    assert injector.next_due_ns is None


def test_a_corrupted_frame_differs_by_one_bit() -> None:
    injector = FaultInjector(FaultPlan(corrupt=1.0), 1)
    for frame in FRAMES[:100]:
        [damaged] = injector.take(0, frame)
        assert (int.from_bytes(frame, "little") ^ int.from_bytes(damaged, "little")).bit_count() == 1


def test_delayed_frames_leave_within_the_bounds_of_delays() -> None:
    injector = FaultInjector(FaultPlan(delay=1.0), 1)
    for frame in FRAMES[:50]:
        assert injector.take(0, frame) == []
    assert injector.next_due_ns is not None
    assert DELAY_NS[0] <= injector.next_due_ns
    assert sorted(map(bytes, injector.due(DELAY_NS[1]))) == sorted(FRAMES[:50])


def test_it_is_time_to_die_after_the_given_number_of_frames() -> None:
    injector = FaultInjector(FaultPlan(kill_after=3), 1)
    kills = []
    for frame in FRAMES[:4]:
        injector.take(0, frame)
        kills.append(injector.kills)
    assert kills == [False, False, True, True]


def test_a_seed_gives_the_same_faults_again_and_another_seed_others() -> None:
    plan = FaultPlan(drop=0.05, duplicate=0.05, reorder=0.05, corrupt=0.05, delay=0.05)
    first, again, other = FaultInjector(plan, 5), FaultInjector(plan, 5), FaultInjector(plan, 6)
    assert through(first) == through(again) != through(other)
    assert first.counts == again.counts
