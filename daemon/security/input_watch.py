"""Limits on bytes that peers have sent and the node cannot receive yet: unfinished messages, floods of small ones.

libzmq delivers only whole messages. It limits the size of each part, but not the number of parts of a message. An empty
part is 2 bytes on the wire and 64 in memory. So the bytes that libzmq has read from a connection are compared with the
bytes of the messages that it has delivered.

`InputWatch` takes the time and the bytes read, and returns the connections that must end.
"""

from dataclasses import dataclass

from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.security.received_input import ReceivedInput

# Memory that libzmq uses for a part in addition to its content, and the size of the smallest part on the wire (bytes).
MEMORY_PER_PART = 64
SMALLEST_PART = 2
# A connection without a message for this time is assumed to have sent parts of the smallest size.
SUSPICIOUS_AFTER_NS = 500_000_000
# Smaller unfinished messages may stay: heartbeats look like one, at 11 bytes a second.
SMALL_BYTES = 65_536
# Most bytes by which heartbeats and the like may change the account of a busy connection between two checks.
DRIFT_BYTES = 4096
# Bytes of heartbeats between two checks, rounded up.
NOISE_BYTES = 16
# Longest time between two checks that counts.
LONGEST_LOOK_NS = 1_000_000_000
# A connection that can explain growth of the heap holds at least this much.
LARGE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class InputRules:
    """Limits on unfinished and queued messages of the connections to one socket."""

    message_bytes: int
    """Largest message of one connection."""
    total_bytes: int
    """Limit on the sum over all connections, queued messages included."""
    stalled_ns: int
    """Longest time for a message larger than `SMALL_BYTES` to arrive."""
    idle_ns: int
    """Time without a message after which a connection is closed."""


@dataclass(slots=True)
class _Account:
    messages_before: int
    """Messages and bytes of earlier connections with the same descriptor."""
    wire_bytes_before: int
    messages: int = 0
    wire_bytes: int = 0
    mean_size: int = SMALLEST_PART
    """Mean size of the latest messages. Queued messages are likely to have the same size."""
    correction: int = 0
    """Bytes read that belong to no message: handshake, heartbeats."""
    quiet_ns: int = 0
    """Time in which the node was ready to receive and no message came."""
    looks: int = 0
    """Number of checks in that time."""
    unfinished_ns: int = 0
    """Part of that time with more than `SMALL_BYTES` held. Without credit a feeder sends no frames; after that, the
    first frames of its next MEP may wait for a busy node, and that wait must not count."""
    unfinished_looks: int = 0
    read: int = 0
    previous_read: int = 0
    read_before: int = 0
    """Bytes read two checks before the last message was noticed: the unfinished message began no earlier."""
    held: int = 0
    memory: int = 0


class InputWatch:
    """The connections of one socket."""

    def __init__(self, received: ReceivedInput, rules: InputRules, now_ns: int) -> None:
        self.received = received
        self._rules = rules
        self._accounts: dict[int, _Account] = {}
        self._counted: dict[int, tuple[int, int]] = {}
        """Messages and bytes of each descriptor that closed connections account for."""
        self._last_look_ns = now_ns
        self._times_empty = 0
        self._total = 0
        self._left: list[tuple[int, int]] = []
        """Memory of closed connections whose messages may wait in the queue: how many times the queue must have been
        empty for these to be gone, and the bytes."""

    @property
    def held(self) -> int:
        """Number of bytes read and not delivered."""
        return sum(account.held for account in self._accounts.values())

    @property
    def memory(self) -> int:
        """Most memory in bytes that all connections may use, with the messages that closed ones have left."""
        self._left = [each for each in self._left if each[0] > self.received.tally.times_empty]
        return self._memory_of_open + sum(nbytes for _, nbytes in self._left)

    @property
    def _memory_of_open(self) -> int:
        return sum(_worst_case(account) for account in self._accounts.values())

    def opened(self, descriptor: int) -> None:
        """Add a connection."""
        self.received.tally.admit(descriptor)
        # Not the present tally: a busy machine may report a connection late, and the messages that the node has
        # received on it would then seem unfinished. Messages of the last connection that no check has seen are credited
        # to this one, which the first check corrects.
        messages, wire_bytes = self._counted.get(descriptor, (0, 0))
        self._accounts[descriptor] = _Account(messages_before=messages, wire_bytes_before=wire_bytes)

    def closed(self, descriptor: int) -> int:
        """Remove a connection; returns the bytes of memory that its end may free."""
        account = self._accounts.pop(descriptor, None)
        if account is None:
            return 0
        self._counted[descriptor] = (
            account.messages_before + account.messages,
            account.wire_bytes_before + account.wire_bytes,
        )
        nbytes = _worst_case(account)
        if nbytes > SMALL_BYTES:
            # The queue may just be found empty, and libzmq may read on until it sees the end.
            self._left.append((self.received.tally.times_empty + 2, nbytes))
        return nbytes

    def look(self, now_ns: int, read: dict[int, int]) -> list[tuple[int, ConnectionRefusal]]:
        """Check all connections by the bytes read from each; returns those that must end, with the reason."""
        received = self.received
        times_empty, messages = received.tally.times_empty, received.tally.total
        was_empty = times_empty != self._times_empty
        # The socket delivers one message of each connection in turn.
        had_its_turn = was_empty or messages - self._total > 2 * len(self._accounts)
        if had_its_turn:
            self._times_empty, self._total = times_empty, messages
        # After a pause of the whole process the elapsed time says nothing about the peers.
        passed_ns = min(now_ns - self._last_look_ns, LONGEST_LOOK_NS) if had_its_turn else 0
        self._last_look_ns = now_ns
        if self._accounts and received.ask is not None:
            received.ask()
        for descriptor, nbytes in read.items():
            if (account := self._accounts.get(descriptor)) is not None:
                self._update(descriptor, account, nbytes, passed_ns, was_empty)
        refused = [
            (descriptor, reason) for descriptor, reason in received.reported().items() if descriptor in self._accounts
        ]
        reported = {descriptor for descriptor, _ in refused}
        refused += [
            (descriptor, reason)
            for descriptor, account in self._accounts.items()
            if descriptor not in reported and (reason := self._verdict(account)) is not None
        ]
        ended = {descriptor for descriptor, _ in refused}
        left = [(each, account.memory) for each, account in self._accounts.items() if each not in ended]
        total = sum(memory for _, memory in left)
        for descriptor, memory in sorted(left, key=lambda item: item[1], reverse=True):
            if total <= self._rules.total_bytes:
                break
            total -= memory
            refused.append((descriptor, ConnectionRefusal.UNFINISHED))
        return refused

    @property
    def is_tense(self) -> bool:
        """Whether the messages may take much more memory than bytes, so that they must be checked often."""
        return self._memory_of_open - self.held > LARGE_BYTES

    def amplified(self) -> list[tuple[int, int]]:
        """The connections that can explain growth of the heap: descriptor, and the most memory it may use in bytes."""
        memory = {descriptor: _worst_case(account) for descriptor, account in self._accounts.items()}
        return [
            (descriptor, nbytes)
            for descriptor, nbytes in memory.items()
            if nbytes >= max(LARGE_BYTES, 4 * self._accounts[descriptor].held)
        ]

    def account(self, descriptor: int) -> dict[str, float]:
        """The state of a connection for the log: bytes read and not delivered, the most memory that these may use,
        messages delivered, and seconds since the last message."""
        account = self._accounts[descriptor]
        return {
            "held_bytes": account.held,
            "worst_case_bytes": _worst_case(account),
            "messages": account.messages,
            "quiet_s": round(account.quiet_ns / 1e9, 3),
        }

    def _update(self, descriptor: int, account: _Account, nbytes: int, passed_ns: int, was_empty: bool) -> None:
        all_messages, all_bytes = self.received.tally.of(descriptor)
        messages, wire_bytes = all_messages - account.messages_before, all_bytes - account.wire_bytes_before
        if messages > account.messages:
            account.mean_size = (wire_bytes - account.wire_bytes) // (messages - account.messages)
            account.messages, account.wire_bytes = messages, wire_bytes
            account.quiet_ns = account.looks = account.unfinished_ns = account.unfinished_looks = 0
            account.read_before = account.previous_read
            # Heartbeats before this message belong to no unfinished message.
            account.correction += NOISE_BYTES
        elif passed_ns:
            account.quiet_ns += passed_ns
            account.looks += 1
            if account.held > SMALL_BYTES:
                account.unfinished_ns += passed_ns
                account.unfinished_looks += 1
        account.previous_read, account.read = account.read, nbytes
        held = nbytes - wire_bytes - account.correction
        if held < 0:
            # The queue still held messages of an earlier connection with this descriptor.
            account.correction += held
            held = 0
        surplus = held - (nbytes - account.read_before)
        if was_empty and surplus > 0:
            account.correction += min(surplus, DRIFT_BYTES)
            held -= min(surplus, DRIFT_BYTES)
        account.held = held
        account.memory = _memory(held, account.mean_size) if messages else held

    def _verdict(self, account: _Account) -> ConnectionRefusal | None:
        # A message that waits for a busy node is no reason to end its connection.
        if account.unfinished_looks >= 2:
            if account.held > self._rules.message_bytes:
                return ConnectionRefusal.UNFINISHED
            if account.held > SMALL_BYTES and account.unfinished_ns > self._rules.stalled_ns:
                return ConnectionRefusal.STALLED
        return ConnectionRefusal.IDLE if account.quiet_ns > self._rules.idle_ns else None


def _worst_case(account: _Account) -> int:
    """Most memory of a connection in bytes. The number of parts of an unfinished message is unknown."""
    looks = account.looks if account.held <= SMALL_BYTES else account.unfinished_looks
    if not account.messages or (looks >= 2 and account.quiet_ns > SUSPICIOUS_AFTER_NS):
        return _memory(account.held, SMALLEST_PART)
    return account.memory


def _memory(held: int, part_bytes: int) -> int:
    return held + held // max(SMALLEST_PART, part_bytes) * MEMORY_PER_PART
