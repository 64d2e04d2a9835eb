"""How many control messages of each peer the node handles: the others are dropped before they are decoded.

A message costs the event loop about 0.1 ms, and a peer can send thousands of hellos a second. So each address has a
budget, all peers without a welcome share one, and each welcomed feeder has its own. The request socket has budgets for
refused requests. No I/O, no clock.
"""

from hltnode.daemon.common.token_buckets import MOST_ACCOUNTS, TokenBucket, TokenBuckets

# A longer message costs one more for each of these (bytes): a hello of all 65,536 sources has 200 kB.
BYTES_PER_UNIT = 4096
# A feeder sends a hello a second until it is welcome, and there may be as many as `builder.max_feeders` (512).
STRANGERS_AT_ONCE, STRANGERS_PER_SECOND = 2048.0, 512.0
# A machine may run many feeders, which start together.
ADDRESS_AT_ONCE, ADDRESS_PER_SECOND = 512.0, 128.0
# A welcomed feeder sends one or two a second, and a few more after a failure of another node.
FEEDER_AT_ONCE, FEEDER_PER_SECOND = 512.0, 64.0
# A connection with more refused messages than this within the time must end.
FLOOD_MESSAGES = 64
FLOOD_NS = 10_000_000_000


class MessageBudget:
    """Admits or refuses messages. Times in ns.

    strangers, address: messages at once and a second, of all peers without a welcome and of one address.
    """

    def __init__(
        self,
        strangers: tuple[float, float] = (STRANGERS_AT_ONCE, STRANGERS_PER_SECOND),
        address: tuple[float, float] = (ADDRESS_AT_ONCE, ADDRESS_PER_SECOND),
    ) -> None:
        self._strangers = TokenBucket(*strangers, 0)
        self._addresses = TokenBuckets(*address)
        self._feeders = TokenBuckets(FEEDER_AT_ONCE, FEEDER_PER_SECOND)
        self._refused: dict[bytes, int] = {}
        """Refused messages of each connection since `_refused_since_ns`."""
        self._refused_since_ns = 0

    def admits_stranger(self, address: str, nbytes: int, now_ns: int) -> bool:
        """Whether the node handles a message of a peer without a welcome."""
        # First its own: an address above its budget takes nothing from the others.
        return _spend(nbytes, now_ns, self._addresses.of(address, now_ns), self._strangers)

    def admits_feeder(self, identity: bytes, nbytes: int, now_ns: int) -> bool:
        """Whether the node handles a message of a welcomed feeder, by the identity of its connection."""
        return _spend(nbytes, now_ns, self._feeders.of(identity, now_ns))

    def is_flood(self, identity: bytes, now_ns: int) -> bool:
        """Note a refused message. True once for a connection with many of them: it must end."""
        if now_ns - self._refused_since_ns > FLOOD_NS:
            self._refused.clear()
            self._refused_since_ns = now_ns
        if len(self._refused) >= MOST_ACCOUNTS and identity not in self._refused:
            return False
        refused = self._refused[identity] = self._refused.get(identity, 0) + 1
        return refused == FLOOD_MESSAGES + 1


def _spend(nbytes: int, now_ns: int, *buckets: TokenBucket) -> bool:
    """Take the units of a message from all buckets; False, and nothing is taken, if one of them has too few."""
    units = 1 + nbytes // BYTES_PER_UNIT
    if any(bucket.wait_ns(units, now_ns) for bucket in buckets):
        return False
    for bucket in buckets:
        bucket.spend(units)
    return True
