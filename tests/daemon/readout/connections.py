"""Connections to feeders that only record what is sent."""

from collections.abc import Iterable

from hltnode.protocol.transport.control_messages import ControlMessage


class RecordedConnections:
    """Every message with its receivers; `alive` are the identities that `reaches` finds."""

    def __init__(self) -> None:
        self.sent: list[tuple[tuple[bytes, ...], ControlMessage]] = []
        self.alive: set[bytes] = set()

    def send(self, identities: Iterable[bytes], message: ControlMessage) -> None:
        self.sent.append((tuple(identities), message))

    def reaches(self, identity: bytes, message: ControlMessage) -> bool:
        self.sent.append(((identity,), message))
        return identity in self.alive

    def take(self) -> list[ControlMessage]:
        """The messages since the last call."""
        messages = [message for _, message in self.sent]
        self.sent.clear()
        return messages
