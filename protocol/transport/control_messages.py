"""What the control socket of a node (ROUTER) exchanges with feeders and operators (DEALER): msgpack maps."""

from __future__ import annotations

from typing import TypeAlias, get_args

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    Credit,
    EndOfRun,
    Error,
    Goodbye,
    Hello,
    Nack,
    Revoked,
    Welcome,
)
from hltnode.protocol.transport.messages import MessageCodec
from hltnode.protocol.transport.run_control_messages import Command, Reply

CONTROL_VERSION = 1

ControlMessage: TypeAlias = (
    Hello | Welcome | Credit | Ack | Revoked | Nack | EndOfRun | Goodbye | Error | Command | Reply
)

_CODEC: MessageCodec[ControlMessage] = MessageCodec(
    *get_args(ControlMessage), what="control message", version=CONTROL_VERSION
)


def encode_message(message: ControlMessage) -> bytes:
    """The message as msgpack.  Raises MessageError for a message that decode_message would refuse."""
    return _CODEC.encode(message)


def decode_message(raw: Buffer) -> ControlMessage:
    """The message in `raw`.  Raises MessageError for anything that is not exactly a known message of this version."""
    return _CODEC.decode(raw)
