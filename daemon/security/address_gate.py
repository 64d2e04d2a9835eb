"""Refuses new connections: of addresses that misused earlier ones, or of all that are unknown.

Unknown addresses are refused while many addresses misuse their connections, and while the process has grown too much by
input of peers. Known are the addresses of connections that have been open for some time.
"""

from collections.abc import Callable

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.security.address_accounts import AddressAccounts
from hltnode.daemon.security.listener_filter import ListenerFilter
from hltnode.daemon.security.tcp_connection import is_local_socket

# Reasons that concern what a connection has sent. A connection that was idle or one too many costs its address nothing.
_OFFENCES = frozenset(
    {
        ConnectionRefusal.UNFINISHED,
        ConnectionRefusal.STALLED,
        ConnectionRefusal.MALFORMED,
        ConnectionRefusal.UNPERMITTED,
        ConnectionRefusal.FLOOD,
        ConnectionRefusal.UNEXPECTED_INPUT,
        ConnectionRefusal.TOO_OFTEN,
    }
)

# Most known addresses that are admitted while others are refused.
MOST_KNOWN = 512

log = get_logger("address_gate")


class AddressGate:
    """The gate of all listening sockets of a node. Open connections are not affected. All calls from one thread.

    Args:
        known: returns the addresses of connections that have been open for some time.
    """

    def __init__(self, counters: OperationCounters, limit: RateLimit, known: Callable[[], set[str]]) -> None:
        self._counters = counters
        self._known = known
        self._limit = limit
        self._accounts = AddressAccounts()
        self._filters: list[ListenerFilter] = []
        self._in_force: tuple[bool, tuple[str, ...]] = (False, ())
        """Whether the kernel admits only the addresses that follow, or refuses only these."""
        self._admitted: frozenset[str] | None = None
        """The known addresses while all others are refused, else None."""
        self._is_full = False

    def listens(self, descriptor: int) -> None:
        """Add a listening TCP socket. Any other descriptor is ignored."""
        try:
            self._filters.append(ListenerFilter(descriptor))
        except OSError:
            return  # a local socket, or closed since
        self._in_force = (False, ())

    def opened(self, address: str, now_ns: int) -> ConnectionRefusal | None:
        """Note a new connection. Returns why it must end, None if it may stay."""
        if self._accounts.is_refused(address, now_ns):
            return ConnectionRefusal.ADDRESS_REFUSED
        if not self._accounts.may_connect(address, now_ns):
            return ConnectionRefusal.TOO_OFTEN
        if self._admitted is None or address in self._admitted or is_local_socket(address):
            return None
        return ConnectionRefusal.UNKNOWN_REFUSED

    def ended(self, address: str, reason: ConnectionRefusal, now_ns: int) -> None:
        """Note that the node has ended a connection."""
        if reason not in _OFFENCES or not (refusal_ns := self._accounts.offended(address, now_ns)):
            return
        self._counters.address_refusals += 1
        if (left_out := self._limit.due("address_refused")) is not None:
            log.warning("address_refused", address=address, reason=reason, seconds=refusal_ns / 1e9, left_out=left_out)

    def grown(self, nbytes: int) -> None:
        """Note by how many bytes too many the process has grown; 0: it has not."""
        self._is_full = nbytes > 0

    def apply(self, now_ns: int) -> None:
        """Bring the filters of the kernel up to date. Call it after changes, and regularly."""
        refused = self._accounts.refused(now_ns)
        refuses_unknown = self._is_full or self._accounts.refuses_unknown(now_ns)
        if not refuses_unknown:
            self._admitted = None
        elif self._admitted is None:
            self._admitted = frozenset(sorted(self._known() - set(refused))[:MOST_KNOWN])
            if (left_out := self._limit.due("unknown_refused")) is not None:
                log.warning("unknown_addresses_refused", admitted=len(self._admitted), left_out=left_out)
        self._counters.refused_addresses = len(refused)
        self._counters.refuses_unknown = refuses_unknown
        admitted = self._admitted
        wanted = (False, refused) if admitted is None else (True, tuple(sorted(admitted - set(refused))))
        if wanted == self._in_force:
            return
        self._in_force = wanted
        for each in self._filters:
            self._apply_to(each, *wanted)

    def close(self) -> None:
        """Close the descriptors of the listening sockets."""
        for each in self._filters:
            each.close()
        self._filters.clear()

    def _apply_to(self, listener: ListenerFilter, admits_only: bool, addresses: tuple[str, ...]) -> None:
        try:
            if admits_only:
                listener.admit_only(addresses)
            else:
                listener.refuse(addresses)
        except OSError as error:
            # `opened` still refuses each connection after libzmq has accepted it.
            if (left_out := self._limit.due("no_filter")) is not None:
                log.warning("kernel_takes_no_filter", error=str(error), left_out=left_out)
