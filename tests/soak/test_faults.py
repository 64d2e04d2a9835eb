"""The plan of faults, and the running time of a node."""

from itertools import islice

import pytest

from tests.soak.faults import FEEDER_KINDS, LONGEST_SECONDS, Kind, plan
from tests.soak.timeline import Timeline

KINDS = tuple(Kind)
TARGETS = {kind: ("feeder1", "feeder2") if kind in FEEDER_KINDS else ("a", "b") for kind in Kind}


def test_each_kind_strikes_once_before_one_strikes_again() -> None:
    first = list(islice(plan(7, KINDS, TARGETS, 60.0), len(KINDS)))
    assert {fault.kind for fault in first} == set(KINDS)


def test_the_same_seed_plans_the_same_faults_and_another_one_others() -> None:
    first = list(islice(plan(7, KINDS, TARGETS, 60.0), 100))
    assert list(islice(plan(7, KINDS, TARGETS, 60.0), 100)) == first
    assert list(islice(plan(8, KINDS, TARGETS, 60.0), 100)) != first


@pytest.mark.parametrize(("seconds", "longest"), [(60.0, 10.0), (600.0, LONGEST_SECONDS)])
def test_one_stop_is_as_long_as_the_soak_has_time_for(seconds: float, longest: float) -> None:
    first = islice(plan(7, KINDS, TARGETS, seconds), len(KINDS))
    stops = [f.seconds for f in first if f.kind in (Kind.STOP_NODE_LONG, Kind.STOP_FEEDER_LONG)]
    assert 8.0 <= max(stops) <= longest
    assert (max(stops) == LONGEST_SECONDS) == (longest == LONGEST_SECONDS)


def test_a_fault_strikes_a_target_of_its_kind() -> None:
    for fault in islice(plan(7, KINDS, TARGETS, 60.0), 200):
        assert fault.target in TARGETS[fault.kind]


def test_without_kinds_nothing_is_planned() -> None:
    assert list(plan(7, (), TARGETS, 60.0)) == []


def test_the_time_of_building_goes_back_over_all_standstills_of_the_node() -> None:
    timeline = Timeline()
    timeline.strike(Kind.STOP_NODE, "a", 90.0).end = 95.0
    timeline.strike(Kind.DISK_FULL, "a", 80.0).end = 89.5
    timeline.strike(Kind.STOP_NODE, "b", 10.0).end = 99.0
    assert timeline.building_began("a", 100.0, 1.5) == 98.5
    assert timeline.building_began("a", 95.25, 1.5) == pytest.approx(79.25)
    # The node is stopped when the decision arrives: the decision had left before.
    assert timeline.building_began("a", 94.0, 0.25) == pytest.approx(89.75)
