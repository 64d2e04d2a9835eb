"""The connections of a socket, and those above the limit of the socket or of one address."""

from collections import Counter
from dataclasses import dataclass

from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.security.tcp_connection import is_this_machine


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Most connections to one socket: in total, from one address, and from this machine."""

    connections: int
    per_address: int
    this_machine: int


class ConnectionTable:
    """The connections of one socket by descriptor, in order of arrival."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._address_of: dict[int, str] = {}
        self._per_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._address_of)

    def opened(self, descriptor: int, address: str) -> tuple[int, ConnectionRefusal] | None:
        """Add a connection. Returns the connection to refuse, which may be an older one, or None.

        A full socket refuses the newest connection of the address with the most connections. So a flood from one
        address leaves room for the others.
        """
        self._address_of[descriptor] = address
        self._per_address[address] += 1
        limit = self._limits.this_machine if is_this_machine(address) else self._limits.per_address
        if self._per_address[address] > limit:
            self.closed(descriptor)
            return descriptor, ConnectionRefusal.ADDRESS_FULL
        if len(self) <= self._limits.connections:
            return None
        busiest = max(self._per_address, key=self._per_address.__getitem__)
        newest = next(each for each in reversed(self._address_of) if self._address_of[each] == busiest)
        self.closed(newest)
        return newest, ConnectionRefusal.SOCKET_FULL

    def closed(self, descriptor: int) -> None:
        """Remove a connection that has ended or was refused; an unknown one is ignored."""
        address = self._address_of.pop(descriptor, None)
        if address is None:
            return
        self._per_address[address] -= 1
        if not self._per_address[address]:
            del self._per_address[address]
