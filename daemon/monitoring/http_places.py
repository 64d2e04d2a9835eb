"""Limits of HTTP connections: in total, per address, for each second, and reserved places for this machine."""

from collections import Counter
from dataclasses import dataclass, field

from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.token_buckets import TokenBuckets
from hltnode.daemon.common.vocabulary import ConnectionRefusal

# One in this many places is reserved for clients of this machine, such as the health check of a supervisor.
KEPT_FOR_THIS_MACHINE = 4
# New connections of one address, each with one request: at once, and per second. A connection costs the event loop
# about 0.5 ms; a browser with the status page opens one a second. A proxy of this machine has many clients, and its
# scripts poll.
AT_ONCE, PER_SECOND = 128.0, 16.0
LOCAL_AT_ONCE, LOCAL_PER_SECOND = 2048.0, 256.0


@dataclass(slots=True)
class HttpPlaces:
    """Counts open connections by address."""

    in_all: int = 32
    per_address: int = 8
    """Limit of connections from one remote address.

    Connections of this machine have none: a proxy may share them among clients.
    """
    _taken: Counter[str] = field(default_factory=Counter)
    _remote: TokenBuckets = field(default_factory=lambda: TokenBuckets(AT_ONCE, PER_SECOND))
    _local: TokenBuckets = field(default_factory=lambda: TokenBuckets(LOCAL_AT_ONCE, LOCAL_PER_SECOND))

    def may_connect(self, address: str, now_ns: int) -> bool:
        """Note a new connection. False if its address opens more of them than any correct client."""
        bucket = (self._local if _is_local(address) else self._remote).of(address, now_ns)
        if bucket.wait_ns(1, now_ns):
            return False
        bucket.spend(1)
        return True

    def take(self, address: str) -> ConnectionRefusal | None:
        """Take a place, which `leave` gives back; returns the reason if none is free."""
        total = self._taken.total()
        if total >= self.in_all:
            return ConnectionRefusal.SOCKET_FULL
        if not _is_local(address):
            if self._taken[address] >= self.per_address:
                return ConnectionRefusal.ADDRESS_FULL
            others = sum(n for each, n in self._taken.items() if not _is_local(each))
            if others >= self.in_all - self.in_all // KEPT_FOR_THIS_MACHINE:
                return ConnectionRefusal.SOCKET_FULL
        self._taken[address] += 1
        return None

    def leave(self, address: str) -> None:
        """Give back a place."""
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]


def may_displace(address: str, other: str, reason: ConnectionRefusal) -> bool:
    """Whether a new client may take the place of another one, after it was refused for this reason.

    Clients of other machines displace no client of this machine.
    """
    if reason is ConnectionRefusal.ADDRESS_FULL:
        return other == address
    return _is_local(address) or not _is_local(other)


def _is_local(address: str) -> bool:
    return Peer(address, "").is_local
