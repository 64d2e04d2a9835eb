"""When the process has grown too much by input of peers, and when free memory is returned."""

import pytest

from hltnode.daemon.security.memory_growth import (
    CALM_BELOW,
    GIVE_BACK_BYTES,
    GIVE_BACK_EVERY_NS,
    GIVE_BACK_FOR_NS,
    GROWTH,
    GROWTH_PAUSE_NS,
    MEASURED_ABOVE,
    MemoryGrowth,
)


class Process:
    """A process with a size set by the test."""

    def __init__(self) -> None:
        self.nbytes: int | None = 100 << 20
        self.given_back = 0
        self.growth = MemoryGrowth(lambda: self.nbytes, self._give_back)

    def _give_back(self) -> None:
        self.given_back += 1

    def grow(self, nbytes: int) -> None:
        assert self.nbytes is not None
        self.nbytes += nbytes


@pytest.fixture
def process() -> Process:
    return Process()


def test_growth_is_reported_from_its_limit_on(process: Process) -> None:
    assert process.growth.excess(0, MEASURED_ABOVE + 1) == 0
    process.grow(GROWTH - 1)
    assert process.growth.excess(1, MEASURED_ABOVE + 1) == 0
    process.grow(1)
    assert process.growth.excess(2, MEASURED_ABOVE + 1) == GROWTH


def test_growth_that_input_of_peers_cannot_explain_is_none(process: Process) -> None:
    process.grow(GROWTH)
    assert process.growth.excess(0, MEASURED_ABOVE) == 0
    assert process.growth.excess(1, MEASURED_ABOVE + 1) == GROWTH


def test_growth_without_bytes_of_peers_is_the_new_size_of_the_calm_process(process: Process) -> None:
    process.grow(2 * GROWTH)
    assert process.growth.excess(0, CALM_BELOW - 1) == 0
    assert process.growth.excess(1, MEASURED_ABOVE + 1) == 0
    process.grow(GROWTH)
    assert process.growth.excess(2, MEASURED_ABOVE + 1) == GROWTH


def test_with_more_bytes_than_in_a_calm_process_the_size_to_compare_with_stays(process: Process) -> None:
    process.grow(GROWTH)
    assert process.growth.excess(0, CALM_BELOW) == 0
    assert process.growth.excess(1, MEASURED_ABOVE + 1) == GROWTH


def test_after_growth_its_effect_is_awaited(process: Process) -> None:
    process.grow(GROWTH)
    assert process.growth.excess(0, MEASURED_ABOVE + 1) == GROWTH
    assert process.growth.excess(GROWTH_PAUSE_NS - 1, MEASURED_ABOVE + 1) is None
    assert process.growth.excess(GROWTH_PAUSE_NS, MEASURED_ABOVE + 1) == GROWTH


def test_while_memory_is_given_back_the_size_to_compare_with_only_falls(process: Process) -> None:
    process.growth.ended(GIVE_BACK_BYTES)
    process.growth.give_back(0)
    process.grow(GROWTH)
    assert process.growth.excess(1, 0) == 0
    assert process.growth.excess(2, MEASURED_ABOVE + 1) == GROWTH
    process.grow(-GROWTH - 100)
    assert process.growth.excess(GIVE_BACK_FOR_NS - 1, 0) == 0
    process.grow(GROWTH - 1)
    assert process.growth.excess(GIVE_BACK_FOR_NS - 1, MEASURED_ABOVE + 1) == 0
    assert process.growth.excess(GIVE_BACK_FOR_NS, 0) == 0
    process.grow(GROWTH)
    assert process.growth.excess(GIVE_BACK_FOR_NS + 1, MEASURED_ABOVE + 1) == GROWTH


def test_a_process_whose_size_cannot_be_read_never_grows() -> None:
    process = Process()
    process.nbytes = None
    assert process.growth.excess(0, MEASURED_ABOVE + 1) == 0


def test_memory_is_given_back_several_times_after_large_connections_have_ended(process: Process) -> None:
    process.growth.ended(GIVE_BACK_BYTES - 1)
    assert not process.growth.give_back(0)
    process.growth.ended(1)
    assert process.growth.give_back(1)
    assert process.growth.give_back(GIVE_BACK_EVERY_NS)
    assert process.given_back == 1
    assert process.growth.give_back(1 + GIVE_BACK_EVERY_NS)
    assert process.given_back == 2
    assert not process.growth.give_back(1 + GIVE_BACK_FOR_NS)
    assert process.given_back == 2
