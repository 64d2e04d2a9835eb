"""When the growth of the process ends a connection, and when free memory is returned."""

from typing import cast

import pytest

from hltnode.daemon.security.input_watch import InputWatch
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

CHECK_NS = GROWTH_PAUSE_NS // 5


class FakeInputs:
    """A socket whose peers have sent some bytes; `largest` returns the result of its `InputWatch`."""

    def __init__(self, memory: int, largest: tuple[int, int] | None = None) -> None:
        self.memory = memory
        self._largest = largest

    def largest(self) -> tuple[int, int] | None:
        return self._largest


def inputs(*sockets: FakeInputs) -> list[InputWatch]:
    return cast(list[InputWatch], list(sockets))


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


def test_the_largest_message_of_all_sockets_ends_when_the_process_has_grown_too_much(process: Process) -> None:
    small = FakeInputs(MEASURED_ABOVE, (5, 10 << 20))
    large = FakeInputs(MEASURED_ABOVE, (7, 90 << 20))
    assert process.growth.excess(0, inputs(small, large)) is None
    process.grow(GROWTH)
    owner, descriptor, grown = process.growth.excess(CHECK_NS, inputs(small, large)) or (None, 0, 0)
    assert cast(object, owner) is large
    assert (descriptor, grown) == (7, GROWTH)


def test_growth_without_bytes_of_peers_is_the_new_size_of_the_calm_process(process: Process) -> None:
    process.grow(2 * GROWTH)
    assert process.growth.excess(0, inputs(FakeInputs(CALM_BELOW - 1))) is None
    busy = inputs(FakeInputs(MEASURED_ABOVE + 1, (5, 10 << 20)))
    assert process.growth.excess(CHECK_NS, busy) is None
    process.grow(GROWTH)
    assert process.growth.excess(2 * CHECK_NS, busy) is not None


def test_after_a_connection_has_ended_its_effect_is_awaited(process: Process) -> None:
    busy = inputs(FakeInputs(MEASURED_ABOVE + 1, (5, 10 << 20)))
    process.grow(GROWTH)
    assert process.growth.excess(0, busy) is not None
    assert process.growth.excess(GROWTH_PAUSE_NS - 1, busy) is None
    assert process.growth.excess(GROWTH_PAUSE_NS, busy) is not None


def test_a_process_whose_size_cannot_be_read_ends_no_connection() -> None:
    process = Process()
    process.nbytes = None
    busy = inputs(FakeInputs(MEASURED_ABOVE + 1, (5, 10 << 20)))
    assert process.growth.excess(0, busy) is None


def test_no_connection_ends_if_none_of_them_can_explain_the_growth(process: Process) -> None:
    process.grow(GROWTH)
    assert process.growth.excess(0, inputs(FakeInputs(MEASURED_ABOVE + 1))) is None


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
