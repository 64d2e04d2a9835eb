"""Messages of the control socket of a node (ROUTER) with feeders and operators (DEALER): msgpack maps."""

from __future__ import annotations

from typing import TypeAlias, get_args

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    Credit,
    EndOfRun,
    Error,
    Goodbye,
    Held,
    Hello,
    Missed,
    Nack,
    Returned,
    Revoked,
    RunClosed,
    Welcome,
)
from hltnode.protocol.transport.messages import MAX_RANGES, MessageCodec
from hltnode.protocol.transport.run_control_messages import Command, Reply

CONTROL_VERSION = 3
# The largest message is an `Ack` of MAX_RANGES ranges, 19 kB, then a `Hello` of 4096 sources, 12 kB.
MAX_CONTROL_SIZE = 32 << 10

ControlMessage: TypeAlias = (
    Hello
    | Welcome
    | Credit
    | Ack
    | Held
    | Revoked
    | Returned
    | Nack
    | Missed
    | EndOfRun
    | Goodbye
    | Error
    | RunClosed
    | Command
    | Reply
)

_CODEC: MessageCodec[ControlMessage] = MessageCodec(
    *get_args(ControlMessage),
    what="control message",
    version=CONTROL_VERSION,
    change="since version 3 a welcome has a token, which every frame must carry",
    max_size=MAX_CONTROL_SIZE,
    # Containers: the message, the list of ranges, and each range.
    max_containers=MAX_RANGES + 2,
)


def encode_message(message: ControlMessage) -> bytes:
    """The message as msgpack.  Raises MessageError for a message that decode_message would refuse."""
    return _CODEC.encode(message)


def encode_error(error: Error, version: int) -> bytes:
    """An error for a peer of another version, which would refuse one of this version unread.

    An error has the same fields in all versions.
    """
    return _CODEC.encode_for(version, error)


def decode_message(raw: Buffer) -> ControlMessage:
    """The message in `raw`.  Raises MessageError for anything except a known message of this version."""
    return _CODEC.decode(raw)
