"""Addresses whose connections the node has ended: refused for some seconds, longer each time.

The account of an address outlives its connections, so a peer gains nothing by connecting again. If many addresses
misuse their connections, all unknown ones are refused for a while, in the same way.
"""

from collections import deque
from dataclasses import dataclass, field

from hltnode.daemon.security.tcp_connection import is_local_socket

FIRST_REFUSAL_NS = 2_000_000_000
LONGEST_REFUSAL_NS = 128_000_000_000
# An address without a new offence for this many times its last refusal starts again with the shortest one.
FORGIVEN_AFTER = 10
# Addresses refused at a time. A new one then takes the place of the one whose refusal ends first.
MOST_REFUSED = 512
MOST_ACCOUNTS = 4096
# Offences of different addresses, and the time in which these have all unknown addresses refused.
MANY_OFFENCES = 16
MANY_WITHIN_NS = 10_000_000_000
# New connections of one address. A feeder opens two, and libzmq tries again ten times a second.
CONNECTIONS_AT_ONCE = 1024
CONNECTIONS_PER_SECOND = 32


@dataclass(slots=True)
class _Refusal:
    length_ns: int = 0
    """Of the last refusal; 0: none yet."""
    end_ns: int = 0
    """Of the last refusal."""

    def start(self, now_ns: int) -> int:
        """Start the next refusal, twice as long as the last one; returns its length."""
        if now_ns > self.end_ns + FORGIVEN_AFTER * self.length_ns:
            self.length_ns = 0
        self.length_ns = min(max(FIRST_REFUSAL_NS, 2 * self.length_ns), LONGEST_REFUSAL_NS)
        self.end_ns = now_ns + self.length_ns
        return self.length_ns


@dataclass(slots=True)
class _Account:
    places: float
    """Connections that may be opened at once now."""
    since_ns: int
    """When `places` was computed."""
    refusal: _Refusal = field(default_factory=_Refusal)


class AddressAccounts:
    """The accounts of all addresses on all sockets of a node. Times in ns; all calls from one thread."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}
        self._refused: dict[str, int] = {}
        """The end of the refusal of each address that is refused."""
        self._unknown = _Refusal()
        """The refusal of all unknown addresses."""
        self._offences: deque[int] = deque(maxlen=MANY_OFFENCES)
        """Times of the last offences of addresses that were not refused."""

    def offended(self, address: str, now_ns: int) -> int:
        """Note that a connection of this address was ended for what it sent.

        Returns the length of the refusal that starts now; 0 if the address is refused already, or if peers have no
        address (local sockets).
        """
        if is_local_socket(address) or self._refused.get(address, 0) > now_ns:
            return 0
        refusal = self._account(address, now_ns).refusal
        length_ns = refusal.start(now_ns)
        self._refused[address] = refusal.end_ns
        if len(self._refused) > MOST_REFUSED:
            del self._refused[min(self._refused, key=self._refused.__getitem__)]
        self._offences.append(now_ns)
        if len(self._offences) == MANY_OFFENCES and now_ns - self._offences[0] <= MANY_WITHIN_NS:
            self._offences.clear()
            self._unknown.start(now_ns)
        return length_ns

    def refuses_unknown(self, now_ns: int) -> bool:
        """Whether all addresses without a connection of some age are refused now."""
        return self._unknown.end_ns > now_ns

    def may_connect(self, address: str, now_ns: int) -> bool:
        """Note a new connection. False if this address opens more connections in a time than any correct peer."""
        if is_local_socket(address):
            return True
        account = self._account(address, now_ns)
        gained = (now_ns - account.since_ns) * CONNECTIONS_PER_SECOND / 1e9
        account.places = min(CONNECTIONS_AT_ONCE, account.places + gained) - 1
        account.since_ns = now_ns
        if account.places >= 0:
            return True
        account.places = 0
        return False

    def is_refused(self, address: str, now_ns: int) -> bool:
        """Whether connections of this address are refused now."""
        return self._refused.get(address, 0) > now_ns

    def refused(self, now_ns: int) -> tuple[str, ...]:
        """The addresses refused now."""
        if any(end_ns <= now_ns for end_ns in self._refused.values()):
            self._refused = {address: end_ns for address, end_ns in self._refused.items() if end_ns > now_ns}
        return tuple(self._refused)

    def _account(self, address: str, now_ns: int) -> _Account:
        account = self._accounts.pop(address, None)
        if account is None:
            account = _Account(CONNECTIONS_AT_ONCE, now_ns)
            if len(self._accounts) >= MOST_ACCOUNTS:
                del self._accounts[next(iter(self._accounts))]
        # At the end of the dictionary: the account that was not used for longest is the first.
        self._accounts[address] = account
        return account
