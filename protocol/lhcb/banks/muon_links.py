"""Muon raw banks of version 3: hit maps of the links of a readout board (docs/formats/muon-banks.md).

A readout board has two streams, each a source of its own with up to 24 links of 48 channels. The number of links of a
stream is part of the geometry, unless the bank has a map of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import MuonVersion
from hltnode.protocol.lhcb.banks.muon import MAX_TIME, MuonDigits
from hltnode.protocol.lhcb.errors import MuonBankError
from hltnode.protocol.raw_data.raw_bank import RawBank

N_STREAMS = 44
MAX_LINKS = 24
CHANNELS_OF_LINK = 48
MAX_TIMES = 12
"""Number of hits of a link that have a time; the other times are 0."""
SYNCHRONISATION = 1 << 4
LINK_MAP = 1 << 5
"""Bits of the first byte: the event only synchronises the links; a map of the links follows."""
MAP_SIZE = 3
HITS_SIZE = 7
"""Size of a link with hits in bytes: the size field, 48 channel bits, the time of the first hit."""

_STREAM_MASK = 0xFF  # of a source id


def decode_muon_links(banks: Iterable[RawBank], links_of_streams: Sequence[int]) -> MuonDigits:
    """The digits of muon banks, in their order; banks of other types are skipped.  Raises MuonBankError.

    `links_of_streams`: active links of each of the 44 streams. In the result `bank` is the stream, `batch` the link,
    `address` 48 link + channel.
    """
    rows: list[tuple[int, int, int, int]] = []
    for bank in banks:
        if bank.type == LhcbBankType.MUON:
            rows += _digits_of(bank, links_of_streams)
    return MuonDigits(*np.array(rows, np.uint32).reshape(-1, 4).T)


def encode_muon_links(
    digits: MuonDigits, links_of_streams: Sequence[int], *, connected: Sequence[Sequence[int]] | None = None
) -> list[RawBank]:
    """One version 3 bank for each stream; the digits are ordered by address.

    `connected`: links of each stream, written as the map of its bank. Raises MuonBankError for values that do not fit.
    """
    address, time = digits.address.astype(np.int64), digits.time.astype(np.int64)
    if len(time) and time.max() > MAX_TIME:
        raise MuonBankError(RejectReason.MALFORMED, f"muon: time {time.max()}, 0..{MAX_TIME} expected")
    banks = []
    for stream, n_links in enumerate(links_of_streams):
        here = np.flatnonzero(digits.bank == stream)
        here = here[np.argsort(address[here], kind="stable")]
        if len(np.unique(address[here])) != len(here):
            raise MuonBankError(RejectReason.MALFORMED, f"muon: two digits of one channel of stream {stream}")
        links = range(n_links) if connected is None else sorted(connected[stream])
        content = bytearray([0 if connected is None else LINK_MAP])
        if connected is not None:
            content += sum(1 << link for link in links).to_bytes(MAP_SIZE, "big")
        for link in links:
            of_link = here[address[here] // CHANNELS_OF_LINK == link]
            content += _link(address[of_link] % CHANNELS_OF_LINK, time[of_link])
        if not np.isin(address[here] // CHANNELS_OF_LINK, np.array(links)).all():
            raise MuonBankError(
                RejectReason.MALFORMED, f"muon: a digit belongs to a link that stream {stream} does not have"
            )
        banks.append(RawBank(LhcbBankType.MUON, MuonVersion.LINKS, stream, memoryview(bytes(content))))
    return banks


def _link(channels: NDArray[np.int64], times: NDArray[np.int64]) -> bytes:
    """The bytes of a link: its size and its content."""
    if not len(channels):
        return b"\0"
    nibbles = [*times[:MAX_TIMES].tolist(), 0]
    further = bytes(high << 4 | low for high, low in zip(nibbles[1::2], nibbles[2::2], strict=False))
    size = HITS_SIZE + len(further)
    word: int = (size - 1) << 52 | sum(1 << channel for channel in channels.tolist()) << 4 | nibbles[0]
    return word.to_bytes(HITS_SIZE, "big") + further


def _digits_of(bank: RawBank, links_of_streams: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    stream, content = bank.source_id & _STREAM_MASK, bytes(bank.payload)
    where = f"muon bank of source {bank.source_id}"
    if bank.version != MuonVersion.LINKS:
        raise MuonBankError(
            RejectReason.BAD_VERSION, f"{where}: bank version {bank.version}, {MuonVersion.LINKS:d} is expected"
        )
    if stream >= N_STREAMS:
        raise MuonBankError(RejectReason.UNKNOWN_SOURCE, f"{where}: stream {stream}, 0..{N_STREAMS - 1} exist")
    if not content:
        raise MuonBankError(RejectReason.TRUNCATED, f"{where}: bank is empty")
    if content[0] & SYNCHRONISATION:
        return
    links, at = list(range(links_of_streams[stream])), 1
    if content[0] & LINK_MAP:
        at += MAP_SIZE
        if at > len(content):
            raise MuonBankError(RejectReason.TRUNCATED, f"{where}: {len(content)} bytes end inside the map of links")
        connected = int.from_bytes(content[1:at], "big")
        links = [link for link in range(MAX_LINKS) if connected >> link & 1]
        if links and links[-1] >= links_of_streams[stream]:
            raise MuonBankError(RejectReason.MALFORMED, f"{where}: link {links[-1]} is not active")
    for link in links:
        size = (content[at] >> 4) + 1 if at < len(content) else len(content)
        if at + size > len(content):
            raise MuonBankError(RejectReason.TRUNCATED, f"{where}: link {link} at byte {at} of {len(content)}")
        if 1 < size < HITS_SIZE:
            raise MuonBankError(RejectReason.BAD_SIZE, f"{where}: link {link} has {size} bytes")
        if size > 1:
            word = int.from_bytes(content[at : at + HITS_SIZE], "big")
            times = [word & 0xF]
            for byte in content[at + HITS_SIZE : at + size]:
                times += [byte >> 4, byte & 0xF]
            times = times[:MAX_TIMES] + [0] * CHANNELS_OF_LINK
            channels = [channel for channel in range(CHANNELS_OF_LINK) if word >> (4 + channel) & 1]
            for channel, time in zip(channels, times, strict=False):
                yield stream, link, CHANNELS_OF_LINK * link + channel, time
        at += size
