"""The header of an event on a socket."""

import pytest

from hltnode.protocol.errors import MessageError
from hltnode.protocol.transport.event_message import (
    ACCEPTED,
    ERROR,
    EventHeader,
    decode_event_header,
    encode_event_header,
)


@pytest.mark.parametrize("stream", [ACCEPTED, ERROR])
def test_a_header_comes_back_as_it_was(stream: bytes) -> None:
    header = EventHeader(stream, 0xFFFF_FFFF, 2**64 - 1)
    assert decode_event_header(encode_event_header(header)) == header
    assert encode_event_header(header)[:1] == stream


@pytest.mark.parametrize("raw", [b"", b"A", bytes(13), b"A" + bytes(13), b"X" + bytes(12)])
def test_a_damaged_header_is_refused(raw: bytes) -> None:
    with pytest.raises(MessageError, match="event header"):
        decode_event_header(raw)


@pytest.mark.parametrize(
    "header", [EventHeader(b"AB", 1, 2), EventHeader(ACCEPTED, 1 << 32, 2), EventHeader(ACCEPTED, 1, -1)]
)
def test_a_header_whose_fields_do_not_fit_cannot_be_written(header: EventHeader) -> None:
    with pytest.raises(MessageError, match="event header"):
        encode_event_header(header)
