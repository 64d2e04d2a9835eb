"""Requests that wait: limits, turns of clients, expiry and cancellation."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hltnode.daemon.requests.request_queue import RequestLimits, RequestQueue, WaitingRequest
from hltnode.protocol.transport.requests import RequestRefusal

LIMITS = RequestLimits(
    batch_events=10,
    batch_bytes=640,
    batch_mfps=6,
    batch_requests=4,
    queue_requests=8,
    queue_bytes=1000,
    client_requests=3,
)


def waiting(client: bytes, number: int, *, events: int = 1, nbytes: int = 10, mfps: int = 1, expires: int = 100) -> Any:
    places = np.zeros((mfps, 3), np.int64)
    return WaitingRequest(client, number, events, places, memoryview(bytes(nbytes)), 0, expires)


@pytest.mark.parametrize("too_large", [{"events": 11}, {"nbytes": 641}, {"mfps": 7}])
def test_a_request_above_a_limit_of_a_batch_is_too_large(too_large: dict[str, int]) -> None:
    queue = RequestQueue(LIMITS)
    assert queue.put(waiting(b"a", 1, **too_large)) == (RequestRefusal.TOO_LARGE, [])
    at_the_limit = {name: value - 1 for name, value in too_large.items()}
    assert queue.put(waiting(b"a", 2, **at_the_limit)) == (None, [])
    assert [each.id for each in queue.take()] == [2]


def test_a_request_above_all_bytes_of_the_queue_is_too_large_and_needs_no_other_client() -> None:
    queue = RequestQueue(replace(LIMITS, queue_bytes=600))
    assert queue.put(waiting(b"a", 1, nbytes=601)) == (RequestRefusal.TOO_LARGE, [])
    assert queue.put(waiting(b"a", 2, nbytes=600)) == (None, [])


def refusals(queue: RequestQueue, *requests: WaitingRequest) -> list[RequestRefusal | None]:
    return [queue.put(request)[0] for request in requests]


def test_a_client_a_full_queue_and_its_bytes_are_bounded() -> None:
    queue = RequestQueue(LIMITS)
    assert refusals(queue, *(waiting(b"a", i) for i in range(4))) == [None, None, None, RequestRefusal.BUSY]
    assert refusals(queue, *(waiting(bytes([i]), 1) for i in range(5))) == [None] * 5
    assert (len(queue), queue.nbytes) == (8, 80)
    queue = RequestQueue(LIMITS)
    assert refusals(queue, waiting(b"a", 1, nbytes=600)) == [None]
    # It would hold more than the other client.
    assert refusals(queue, waiting(b"b", 2, nbytes=601)) == [RequestRefusal.BUSY]
    # With the same number of bytes neither holds more, and the one that came first stays.
    assert refusals(queue, waiting(b"b", 2, nbytes=600)) == [RequestRefusal.BUSY]
    assert refusals(queue, waiting(b"b", 3, nbytes=400)) == [None]


def test_in_a_full_queue_the_client_that_holds_most_makes_room() -> None:
    queue = RequestQueue(LIMITS)
    for number in (1, 2, 3):
        queue.put(waiting(b"a", number))
        queue.put(waiting(b"b", number))
    queue.put(waiting(b"c", 1))
    queue.put(waiting(b"c", 2))
    refused, left = queue.put(waiting(b"new", 1))
    assert (refused, [(each.client, each.id) for each in left]) == (None, [(b"a", 3)])
    refused, left = queue.put(waiting(b"new", 2))
    assert (refused, [(each.client, each.id) for each in left]) == (None, [(b"b", 3)])
    # All hold as much now.
    assert queue.put(waiting(b"new", 3)) == (RequestRefusal.BUSY, [])
    assert (len(queue), queue.nbytes) == (8, 80)
    queue = RequestQueue(LIMITS)
    queue.put(waiting(b"a", 1, nbytes=500))
    queue.put(waiting(b"a", 2, nbytes=450))
    queue.put(waiting(b"b", 1, nbytes=50))
    refused, left = queue.put(waiting(b"c", 1, nbytes=400))
    assert (refused, [(each.client, each.id) for each in left]) == (None, [(b"a", 2)])
    assert (len(queue), queue.nbytes) == (3, 950)
    assert queue.put(waiting(b"c", 2, nbytes=400)) == (RequestRefusal.BUSY, [])


def test_clients_are_served_in_turn() -> None:
    queue = RequestQueue(LIMITS)
    for number in (1, 2, 3):
        queue.put(waiting(b"flood", number))
    queue.put(waiting(b"one", 4))
    queue.put(waiting(b"two", 5))
    assert [each.id for each in queue.take()] == [1, 4, 5, 2]
    assert [each.id for each in queue.take()] == [3]
    assert queue.take() == []


@pytest.mark.parametrize("large", [{"events": 9}, {"nbytes": 576}, {"mfps": 5}])
def test_a_request_that_does_not_fit_is_the_first_of_the_next_batch(large: dict[str, int]) -> None:
    queue = RequestQueue(LIMITS)
    queue.put(waiting(b"a", 1))
    queue.put(waiting(b"b", 2, **large))
    queue.put(waiting(b"c", 3))
    first = [each.id for each in queue.take()]
    assert first == [1, 2]
    queue.put(waiting(b"a", 4))
    queue.put(waiting(b"b", 5, **large))
    assert [each.id for each in queue.take()] == [3, 4]
    assert [each.id for each in queue.take()] == [5]


def test_expired_cancelled_and_forgotten_requests_leave_the_queue() -> None:
    queue = RequestQueue(LIMITS)
    for client, number, expires in ((b"a", 1, 50), (b"a", 2, 70), (b"b", 1, 60), (b"b", 3, 80)):
        queue.put(waiting(client, number, expires=expires))
    assert queue.next_expiry_ns() == 50
    assert queue.expired(49) == []
    assert [(each.client, each.id) for each in queue.expired(60)] == [(b"a", 1), (b"b", 1)]
    assert queue.next_expiry_ns() == 70
    assert queue.cancel(b"a", 1) == queue.cancel(b"c", 2) == 0
    assert queue.cancel(b"a", 2) == 1
    assert queue.forget(b"b") == 1
    assert queue.forget(b"b") == 0
    assert (len(queue), queue.nbytes, queue.next_expiry_ns(), queue.take()) == (0, 0, None, [])


class QueueMachine(RuleBasedStateMachine):
    """Compared with a list of all requests that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = RequestQueue(LIMITS)
        self.held: list[WaitingRequest] = []
        self.number = 0

    @rule(client=st.sampled_from([b"a", b"b", b"c", b"d"]), events=st.integers(1, 10), expires=st.integers(1, 100))
    def put(self, client: bytes, events: int, expires: int) -> None:
        self.number += 1
        request = waiting(client, self.number, events=events, nbytes=30 * events, expires=expires)
        before = list(self.held)
        refused, left = self.queue.put(request)
        self.held = [each for each in self.held if each not in left]
        nbytes = sum(len(each.mep) for each in before)
        fits = len(before) < LIMITS.queue_requests and nbytes + len(request.mep) <= LIMITS.queue_bytes
        too_many = sum(each.client == client for each in before) >= LIMITS.client_requests
        assert refused in (None, RequestRefusal.BUSY)
        if too_many or fits:
            assert left == []
            assert (refused is None) == (not too_many)
        for each in left:
            assert each.client != client
            mine = [other for other in before if other.client == each.client]
            assert mine.index(each) >= len(mine) - len(left)
        if refused is None:
            self.held.append(request)
        assert len(self.held) <= LIMITS.queue_requests
        assert sum(len(each.mep) for each in self.held) <= LIMITS.queue_bytes

    @rule()
    def take(self) -> None:
        taken = self.queue.take()
        assert sum(each.n_events for each in taken) <= LIMITS.batch_events
        assert bool(taken) == bool(self.held)
        for client in {each.client for each in taken}:
            mine = [each for each in self.held if each.client == client]
            of_batch = [each for each in taken if each.client == client]
            assert mine[: len(of_batch)] == of_batch
        self.held = [each for each in self.held if each not in taken]

    @rule(now=st.integers(1, 100))
    def expire(self, now: int) -> None:
        late = self.queue.expired(now)
        assert sorted(each.id for each in late) == [each.id for each in self.held if each.expires_ns <= now]
        self.held = [each for each in self.held if each.expires_ns > now]

    @rule(client=st.sampled_from([b"a", b"b"]), back=st.integers(0, 5))
    def cancel(self, client: bytes, back: int) -> None:
        number = self.number - back
        kept = [each for each in self.held if (each.client, each.id) != (client, number)]
        assert self.queue.cancel(client, number) == len(self.held) - len(kept)
        self.held = kept

    @invariant()
    def the_counts_are_those_of_the_list(self) -> None:
        assert len(self.queue) == len(self.held)
        assert self.queue.nbytes == sum(len(each.mep) for each in self.held)
        assert self.queue.next_expiry_ns() == min((each.expires_ns for each in self.held), default=None)


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=30)
