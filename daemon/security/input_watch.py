"""What peers have sent and the node has not been able to take: unfinished messages, and floods of small ones.

libzmq gives the node whole messages only, and has no bound on an unfinished one but the size of each part. A message
may have parts without end; an empty part is 2 bytes on the wire and 64 in memory. So the bytes that have been read of a
connection are compared with those of the messages that came out of it.

`InputWatch` is told the time and the bytes that were read, and answers which connections have to end.
"""

from dataclasses import dataclass

from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.security.received_input import ReceivedInput

# What libzmq takes for a part beside its content, and the smallest part there is, in bytes.
MEMORY_PER_PART = 64
SMALLEST_PART = 2
# A connection without a message for this time is judged as if it had sent parts of the smallest size.
SUSPICIOUS_AFTER_NS = 500_000_000
# An unfinished message may stay if it is smaller: heartbeats look like one, 11 bytes a second.
SMALL_BYTES = 65_536
# How far heartbeats and the like may move the account of a busy connection from one look to the next.
DRIFT_BYTES = 4096
# What heartbeats add from one look to the next, rounded up.
NOISE_BYTES = 16
# The longest time between two looks that counts.
LONGEST_LOOK_NS = 1_000_000_000
# A connection that has made the heap grow has at least this much in it; others are not blamed.
BLAMED_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class InputRules:
    """Bounds on what the connections of one socket may leave unfinished."""

    message_bytes: int
    """Largest message of one connection."""
    total_bytes: int
    """Sum over all connections, what is queued included."""
    stalled_ns: int
    """Time that a message larger than `SMALL_BYTES` may take."""
    idle_ns: int
    """Time without a message after which a connection is closed."""


@dataclass(slots=True)
class _Account:
    messages_before: int
    """Messages and bytes that earlier connections have delivered under this descriptor."""
    wire_bytes_before: int
    messages: int = 0
    wire_bytes: int = 0
    mean_size: int = SMALLEST_PART
    """Of the messages that the last look with new ones has seen: what is still queued is likely to be as large."""
    correction: int = 0
    """Bytes that were read and are not part of a message: handshake, heartbeats."""
    quiet_ns: int = 0
    """Time for which the node could have taken a message, and there was none."""
    looks: int = 0
    """Looks in that time."""
    unfinished_ns: int = 0
    """The part of that time for which more than `SMALL_BYTES` have been there: without credit a feeder sends nothing,
    and then the first frames of its next MEP may wait for a busy node."""
    unfinished_looks: int = 0
    read: int = 0
    previous_read: int = 0
    read_before: int = 0
    """Bytes read two looks before the last message was seen: the unfinished one cannot have begun earlier."""
    held: int = 0
    memory: int = 0


class InputWatch:
    """The connections of one socket."""

    def __init__(self, received: ReceivedInput, rules: InputRules, now_ns: int) -> None:
        self.received = received
        self._rules = rules
        self._accounts: dict[int, _Account] = {}
        self._last_look_ns = now_ns
        self._times_empty = 0
        self._total = 0

    @property
    def held(self) -> int:
        """Bytes that have been read and not delivered."""
        return sum(account.held for account in self._accounts.values())

    @property
    def memory(self) -> int:
        """What all connections may take in memory at worst."""
        return sum(_worst_case(account) for account in self._accounts.values())

    def opened(self, descriptor: int) -> None:
        """Begin to watch a connection."""
        tally = self.received.tally
        tally.admit(descriptor)
        messages, wire_bytes = tally.of(descriptor)
        self._accounts[descriptor] = _Account(messages_before=messages, wire_bytes_before=wire_bytes)

    def closed(self, descriptor: int) -> int:
        """Forget a connection; returns the memory that its end may give back."""
        account = self._accounts.pop(descriptor, None)
        return 0 if account is None else _worst_case(account)

    def look(self, now_ns: int, read: dict[int, int]) -> list[tuple[int, ConnectionRefusal]]:
        """Judge all connections by the bytes that have been read of each; returns those that have to end."""
        received = self.received
        times_empty, messages = received.tally.times_empty, received.tally.total
        was_empty = times_empty != self._times_empty
        # The socket takes one message of each connection in turn.
        had_its_turn = was_empty or messages - self._total > 2 * len(self._accounts)
        if had_its_turn:
            self._times_empty, self._total = times_empty, messages
        # After a pause of the whole process the time says nothing about the peers.
        passed_ns = min(now_ns - self._last_look_ns, LONGEST_LOOK_NS) if had_its_turn else 0
        self._last_look_ns = now_ns
        if self._accounts and received.ask is not None:
            received.ask()
        for descriptor, nbytes in read.items():
            if (account := self._accounts.get(descriptor)) is not None:
                self._update(descriptor, account, nbytes, passed_ns, was_empty)
        refused = [
            (descriptor, ConnectionRefusal.MALFORMED)
            for descriptor in received.reported()
            if descriptor in self._accounts
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

    def largest(self) -> tuple[int, int] | None:
        """The connection that may have made the heap grow most, and the bytes that it may take at worst; None if there
        is none to blame."""
        suspects = {descriptor: _worst_case(account) for descriptor, account in self._accounts.items()}
        descriptor = max(suspects, key=suspects.__getitem__, default=None)
        if descriptor is None or suspects[descriptor] < max(BLAMED_BYTES, 4 * self._accounts[descriptor].held):
            return None
        return descriptor, suspects[descriptor]

    def account(self, descriptor: int) -> dict[str, float]:
        """What a connection has left unfinished, for the log: bytes that were read and not delivered, what they may
        take in memory at worst, messages before them, and seconds without one."""
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
            # Heartbeats before this message are not part of an unfinished one.
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
            # Messages of an earlier connection with this descriptor were still queued.
            account.correction += held
            held = 0
        surplus = held - (nbytes - account.read_before)
        if was_empty and surplus > 0:
            account.correction += min(surplus, DRIFT_BYTES)
            held -= min(surplus, DRIFT_BYTES)
        account.held = held
        account.memory = _memory(held, account.mean_size) if messages else held

    def _verdict(self, account: _Account) -> ConnectionRefusal | None:
        # A message that waits for this node to take it is not the fault of its connection.
        if account.unfinished_looks >= 2:
            if account.held > self._rules.message_bytes:
                return ConnectionRefusal.UNFINISHED
            if account.held > SMALL_BYTES and account.unfinished_ns > self._rules.stalled_ns:
                return ConnectionRefusal.STALLED
        return ConnectionRefusal.IDLE if account.quiet_ns > self._rules.idle_ns else None


def _worst_case(account: _Account) -> int:
    """What a connection may take in memory: of an unfinished message only the bytes are known, not its parts."""
    looks = account.looks if account.held <= SMALL_BYTES else account.unfinished_looks
    if not account.messages or (looks >= 2 and account.quiet_ns > SUSPICIOUS_AFTER_NS):
        return _memory(account.held, SMALLEST_PART)
    return account.memory


def _memory(held: int, part_bytes: int) -> int:
    return held + held // max(SMALLEST_PART, part_bytes) * MEMORY_PER_PART
