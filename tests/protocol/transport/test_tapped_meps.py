"""Whole MEPs of a tap: the MEP of a slot, and its message."""

import numpy as np
import pytest

from hltnode.protocol.errors import MessageError
from hltnode.protocol.raw_data.mep import encode_mep, mep_of_slot
from hltnode.protocol.transport.tap_message import (
    BEGIN,
    CLOSED,
    MEP,
    TapHeader,
    decode_tapped,
    encode_tap_header,
    encode_tapped_about,
)
from tests.daemon.fakes import synthetic_meps

ABOUT = encode_tapped_about(8, (3, 9), "raw")


def header(kind: bytes = MEP) -> bytes:
    return encode_tap_header(TapHeader(kind, 5, 6, 7, 2))


def test_the_mep_of_a_slot_has_the_bytes_of_encode_mep_whatever_the_order_and_the_holes() -> None:
    [mep] = synthetic_meps(1, sources=(9000, 4097, 0, 4096))
    slot, rows = bytearray(b"\xff" * 24), []
    for source, mfp in mep.mfps.items():
        rows.append((source, len(slot), len(mfp)))
        slot += bytes(mfp) + b"\xff" * 16
    places = np.array(rows, np.int64)
    assert mep_of_slot(memoryview(slot), places) == encode_mep(list(mep.mfps.values()))
    assert mep_of_slot(memoryview(slot), places[:1]) == encode_mep([mep.mfps[9000]])


@pytest.mark.parametrize("row", [(1, 90, 11), (1, 101, 0), (1, -1, 4), (1, 0, -1), (65536, 0, 4), (-1, 0, 4)])
def test_a_place_outside_of_the_slot_is_refused(row: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="outside"):
        mep_of_slot(bytes(100), np.array([row], np.int64))


def test_a_mep_without_mfps_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 65535"):
        mep_of_slot(bytes(100), np.zeros((0, 3), np.int64))


def test_a_tapped_mep_comes_back_as_written_and_a_greeting_is_none() -> None:
    found = decode_tapped([header(), b"content", ABOUT])
    assert found is not None
    assert (found.header.run, found.header.mep, found.header.sequence) == (6, 7, 5)
    assert (bytes(found.content), found.events_per_mep, found.missing, found.chain) == (b"content", 8, (3, 9), "raw")
    assert decode_tapped([header(BEGIN)]) is None


def test_other_messages_of_taps_are_refused() -> None:
    cases: list[list[bytes]] = [
        [],
        [header(CLOSED)],
        [header(BEGIN), b"", ABOUT],
        [header()],
        [header(), b"", ABOUT, b""],
        [header(), b"", ABOUT[:3]],
        # As many missing sources as the part has no room for, and no name behind them.
        [header(), b"", ABOUT[:7]],
        [header(), b"", ABOUT[:8]],
        [header(), b"", encode_tapped_about(8, (), "n" * 257)],
        [header(), b"", encode_tapped_about(0, (), "raw")],
        [header(), b"", encode_tapped_about(8, (), "r\n")],
        [header(), b"", ABOUT + b"\xff"],
    ]
    for parts in cases:
        with pytest.raises(MessageError):
            decode_tapped(parts)
    assert decode_tapped([header(), b"", encode_tapped_about(8, (), "n" * 256)]) is not None
    with pytest.raises(MessageError):
        encode_tapped_about(70_000, (), "raw")
