"""The requests that wait, client by client: no socket, no clock, no thread."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.transport.requests import RequestRefusal

ROOM_STEP = 64
"""A MEP in a batch begins at a cache line."""


@dataclass(frozen=True, slots=True, eq=False)
class WaitingRequest:
    """A request whose MEP has been checked. client: identity of its connection. Times are monotonic (ns)."""

    client: bytes
    id: int
    n_events: int
    places: NDArray[np.int64] = field(repr=False)
    """i64[n, 3]: source id, byte offset in the MEP and bytes of each MFP."""
    mep: memoryview = field(repr=False)
    arrived_ns: int
    expires_ns: int

    @property
    def room(self) -> int:
        """Bytes in a batch: the MEP, up to the next multiple of ROOM_STEP."""
        return -(-len(self.mep) // ROOM_STEP) * ROOM_STEP


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of one batch (events, bytes, MFPs, requests), of the queue (requests, bytes), and of one client."""

    batch_events: int
    batch_bytes: int
    batch_mfps: int
    batch_requests: int
    queue_requests: int
    queue_bytes: int
    client_requests: int


class RequestQueue:
    """Takes requests of clients in turn, so that a client that floods waits for itself."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._clients: dict[bytes, deque[WaitingRequest]] = {}
        """Clients with waiting requests; the first one is the next to be served."""
        self._n = 0
        self._nbytes = 0

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        """Bytes of the waiting MEPs."""
        return self._nbytes

    def put(self, request: WaitingRequest) -> tuple[RequestRefusal | None, list[WaitingRequest]]:
        """Append a request; the reason if it is refused, and the requests of others that leave the full queue for it.

        When the queue is full, the client that holds most of it loses its newest request, unless that is this client.
        """
        limits = self._limits
        if (
            request.n_events > limits.batch_events
            or request.room > limits.batch_bytes
            or len(request.mep) > limits.queue_bytes
            or len(request.places) > limits.batch_mfps
        ):
            return RequestRefusal.TOO_LARGE, []
        if len(self._clients.get(request.client, ())) >= limits.client_requests:
            return RequestRefusal.BUSY, []
        left: list[WaitingRequest] = []
        while self._n >= limits.queue_requests or self._nbytes + len(request.mep) > limits.queue_bytes:
            by_bytes = self._n < limits.queue_requests
            most = max(self._clients, key=lambda client: self._held(client, by_bytes=by_bytes))
            own = len(request.mep) if by_bytes else 1
            if self._held(most, by_bytes=by_bytes) <= self._held(request.client, by_bytes=by_bytes) + own:
                return RequestRefusal.BUSY, left
            left += self._drop(most, [self._clients[most][-1]])
        self._clients.setdefault(request.client, deque()).append(request)
        self._n += 1
        self._nbytes += len(request.mep)
        return None, left

    def _held(self, client: bytes, *, by_bytes: bool) -> int:
        """What a client holds of the queue, in bytes or requests."""
        requests = self._clients.get(client, ())
        return sum(len(each.mep) for each in requests) if by_bytes else len(requests)

    def cancel(self, client: bytes, number: int) -> int:
        """Drop the waiting requests of a client with this id; returns how many there were."""
        return len(self._drop(client, [each for each in self._clients.get(client, ()) if each.id == number]))

    def forget(self, client: bytes) -> int:
        """Drop all requests of a client; returns how many there were."""
        return len(self._drop(client, list(self._clients.get(client, ()))))

    def expired(self, now_ns: int) -> list[WaitingRequest]:
        """Remove and return the requests whose time has ended."""
        late = [(client, [each for each in of if each.expires_ns <= now_ns]) for client, of in self._clients.items()]
        return [each for client, requests in late for each in self._drop(client, requests)]

    def next_expiry_ns(self) -> int | None:
        """When the first request expires; None without requests."""
        return min((each.expires_ns for of in self._clients.values() for each in of), default=None)

    def take(self) -> list[WaitingRequest]:
        """Remove and return the requests of the next batch: one of each client in turn, while they fit.

        A request that does not fit ends the batch, so that a large one is not overtaken for ever.
        """
        limits = self._limits
        taken: list[WaitingRequest] = []
        events = nbytes = mfps = 0
        while self._clients and len(taken) < limits.batch_requests:
            client, requests = next(iter(self._clients.items()))
            request = requests[0]
            events += request.n_events
            nbytes += request.room
            mfps += len(request.places)
            if events > limits.batch_events or nbytes > limits.batch_bytes or mfps > limits.batch_mfps:
                break
            requests.popleft()
            del self._clients[client]
            if requests:
                self._clients[client] = requests
            taken.append(request)
        self._n -= len(taken)
        self._nbytes -= sum(len(each.mep) for each in taken)
        return taken

    def take_all(self) -> Iterator[WaitingRequest]:
        """Remove and yield all requests."""
        for client in list(self._clients):
            yield from self._drop(client, list(self._clients[client]))

    def _drop(self, client: bytes, requests: list[WaitingRequest]) -> list[WaitingRequest]:
        if requests:
            dropped = set(map(id, requests))
            left = deque(each for each in self._clients[client] if id(each) not in dropped)
            if left:
                self._clients[client] = left
            else:
                del self._clients[client]
            self._n -= len(requests)
            self._nbytes -= sum(len(each.mep) for each in requests)
        return requests
