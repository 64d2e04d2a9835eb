"""The joiner as a program with sanitizers: steps in, joined MEPs and counters out."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hltnode.daemon.common.vocabulary import UdpRefusal
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.transport.frame_header import HEADER_SIZE, check_crc, decode_header
from tests.daemon.udp.packets import EVENTS, SOURCES

MS = 1_000_000
FLUSH_NS = 10 * MS
TOKEN = 77


class Step(NamedTuple):
    """A datagram (kind 0) of sender 1 + column, a tick (1), a hand-over (2), or the run is left (3), ended if it
    is over (4), or opened again (5)."""

    kind: int
    now_ns: int
    sender: int = 0
    datagram: bytes = b""


HAND_OVER, LEAVE_RUN, END_RUN, REOPEN_RUNS = 2, 3, 4, 5


def sent(source: int, datagram: bytes, now_ns: int = 0) -> Step:
    """A datagram from the address of its source."""
    return Step(0, now_ns, 1 + SOURCES.index(source), datagram)


@dataclass
class Fragment:
    """A joined MFP: its MEP, source, first event, and the payload of each event; None: no bank."""

    mep: int
    source: int
    first_event: int
    payloads: list[bytes | None]


@dataclass
class Joined:
    fragments: list[Fragment]
    refused: dict[UdpRefusal, int]
    missing: list[int]
    packets: int
    meps: int
    meps_lost: int
    discarded: int
    bursts: list[tuple[int, ...]]

    def events(self, source: int) -> list[int]:
        """The events of a source with a bank, in the order of the joined MFPs."""
        return [
            fragment.first_event + i
            for fragment in self.fragments
            if fragment.source == source
            for i, payload in enumerate(fragment.payloads)
            if payload is not None
        ]


def join(
    program: Path,
    steps: Iterable[Step],
    *,
    packets_per_mep: int = 4,
    open_meps: int = 4,
    datagram_bytes: int = 512,
    sources: Sequence[int] = SOURCES,
) -> Joined:
    """Run the joiner; MEPs are handed over at the end and at each HAND_OVER."""
    settings = struct.pack("<IIIIqI", packets_per_mep, EVENTS, open_meps, datagram_bytes, FLUSH_NS, len(sources))
    settings += struct.pack(f"<{len(sources)}H", *sources)
    body = b"".join(
        struct.pack("<BqBI", step.kind, step.now_ns, step.sender, len(step.datagram)) + step.datagram for step in steps
    )
    done = subprocess.run([program], input=settings + body, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return _decoded(done.stdout, len(sources))


def _decoded(out: bytes, n_sources: int) -> Joined:
    at, fragments = 0, []
    while size := struct.unpack_from("<I", out, at)[0]:
        frame = out[at + 4 : at + 4 + size]
        at += 4 + size
        header = decode_header(frame, max_bytes=size)
        check_crc(header, frame)
        assert header.token == TOKEN
        mfp = Mfp.parse(memoryview(frame)[HEADER_SIZE:])
        payloads = [None if kind == NO_BANK else bytes(mfp.fragment(i)) for i, kind in enumerate(mfp.types)]
        fragments.append(Fragment(header.mep_id, header.source_id, mfp.event_id, payloads))
    at += 4
    n_reasons = len(UdpRefusal)
    numbers = struct.unpack_from(f"<{n_reasons + n_sources + 4}Q", out, at)
    at += 8 * len(numbers)
    (n_bursts,) = struct.unpack_from("<I", out, at)
    bursts = [struct.unpack_from("<5Q", out, at + 4 + 40 * i) for i in range(n_bursts)]
    refused = {reason: n for reason, n in zip(UdpRefusal, numbers[:n_reasons], strict=True) if n}
    missing, (packets, meps, lost, discarded) = list(numbers[n_reasons:-4]), numbers[-4:]
    return Joined(fragments, refused, missing, packets, meps, lost, discarded, bursts)
