"""Which HTTP connection is taken: a limit in all, one for each address, and places for clients of this machine."""

from collections import Counter
from dataclasses import dataclass, field

from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.vocabulary import ConnectionRefusal

# One in this many places is kept for clients of this machine: the health check of a supervisor is one of them.
KEPT_FOR_THIS_MACHINE = 4


@dataclass(slots=True)
class HttpPlaces:
    """Counts the connections that are there, by address."""

    in_all: int = 32
    per_address: int = 8
    """Connections of one other address; those of this machine may come from a proxy, and are not told apart."""
    _taken: Counter[str] = field(default_factory=Counter)

    def take(self, address: str) -> ConnectionRefusal | None:
        """Take a place, to be given back with `leave`; or the reason why there is none."""
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
        """Give a place back."""
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]


def _is_local(address: str) -> bool:
    return Peer(address, "").is_local
