"""What the readiness of a node says, compared with the floor of its run."""

import pytest

from tests.attacks.readiness import Readiness

LACKS = {"feeders": "waits for honest2"}


def follow(seconds: float, *, refuses: bool, rises: bool) -> Readiness:
    readiness = Readiness()
    readiness.add(0.0, {}, 0)
    for number in range(1, round(seconds * 10) + 1):
        readiness.add(0.1 * number, LACKS if refuses else {}, number if rises else 0)
    return readiness


def test_a_node_that_tells_the_truth_contradicts_nothing() -> None:
    ready = follow(20.0, refuses=False, rises=True)
    assert ready.unfounded_s < 0.2
    assert ready.refused_s == 0.0
    refuses = follow(20.0, refuses=True, rises=False)
    assert refuses.unfounded_s == 0.0
    assert refuses.refused_s == 0.0


def test_a_node_that_is_ready_without_progress_is_found() -> None:
    assert follow(20.0, refuses=False, rises=False).unfounded_s == pytest.approx(20.0)


def test_a_node_that_refuses_while_its_floor_rises_is_found_with_its_reason() -> None:
    found = follow(20.0, refuses=True, rises=True)
    assert found.refused_s == pytest.approx(19.9)
    assert found.refusal == "feeders: waits for honest2"


def test_single_rises_during_a_refusal_are_the_end_of_earlier_work() -> None:
    readiness = Readiness()
    for number in range(20):
        readiness.add(5.0 * number, LACKS, number)
    assert readiness.refused_s == 0.0


def test_a_node_that_becomes_ready_has_its_full_time_again() -> None:
    readiness = Readiness()
    for number in range(10):
        readiness.add(6.0 * number, {}, 0)
        readiness.add(6.0 * number + 5.9, LACKS, 0)
    assert readiness.unfounded_s < 0.1
