"""Connections to feeders that only record messages."""

from collections.abc import Iterable

from hltnode.protocol.transport.control_messages import ControlMessage, decode_message, encode_message


class RecordedConnections:
    """Every decoded message with its receivers.

    `alive`: identities that `reaches` finds; `ended`: those to which `delivers` sends nothing.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[tuple[bytes, ...], ControlMessage]] = []
        self.alive: set[bytes] = set()
        self.ended: set[bytes] = set()

    def send(self, identities: Iterable[bytes], message: ControlMessage) -> None:
        self.sent.append((tuple(identities), decode_message(encode_message(message))))

    def reaches(self, identity: bytes, message: ControlMessage) -> bool:
        self.send((identity,), message)
        return identity in self.alive

    def delivers(self, identity: bytes, message: ControlMessage) -> bool:
        if identity in self.ended:
            return False
        self.send((identity,), message)
        return True

    def take(self, identity: bytes | None = None) -> list[ControlMessage]:
        """The messages since the last call, all or those to one peer."""
        messages = [message for identities, message in self.sent if identity is None or identity in identities]
        self.sent.clear()
        return messages
