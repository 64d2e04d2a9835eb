"""A reproducible corpus of damaged bytes, made from valid ones, for every level that receives bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

# Typical wrong values of sizes and counts.
LYING_U16 = (0, 1, 2, 0x7FFF, 0x8000, 0xFFFF)
LYING_U32 = (0, 1, 7, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFC, 0xFFFF_FFFF)

# No bytes, and bytes without structure.
FORMLESS = (
    b"",
    b"\0",
    b"\xff",
    b"\0" * 3,
    b"\0" * 64,
    b"\xff" * 64,
    b"\0" * 5000,
    b"\xff" * 5000,
    b"\xcb" * 200,
    bytes(range(256)),
    b"GET / HTTP/1.1\r\nHost: node\r\n\r\n",
)


def truncations(good: bytes, *, header: int = 96, samples: int = 40, seed: int = 1) -> Iterator[bytes]:
    """The bytes cut at every length up to `header`, at some larger lengths, and a few bytes before the end."""
    yield from (good[:length] for length in range(min(header, len(good))))
    rng = random.Random(seed)
    yield from (good[: rng.randrange(len(good))] for _ in range(samples if good else 0))
    yield from (good[:-cut] for cut in range(1, min(9, len(good))))


def extensions(good: bytes) -> Iterator[bytes]:
    """The good bytes followed by further ones."""
    yield from (good + tail for tail in (b"\0", b"\0" * 4, b"\xff" * 8, good[:7]))


def wrong_sizes(good: bytes, *, header: int = 96) -> Iterator[bytes]:
    """Each 16-bit and 32-bit word of the first `header` bytes replaced by typical wrong values: sizes, counts,
    magics."""
    for at in range(0, min(header, len(good)) - 1, 2):
        for value in LYING_U16:
            yield good[:at] + struct.pack("<H", value) + good[at + 2 :]
    for at in range(0, min(header, len(good)) - 3, 4):
        for value in LYING_U32:
            yield good[:at] + struct.pack("<I", value) + good[at + 4 :]


def bit_flips(good: bytes, *, header: int = 64, samples: int = 100, seed: int = 2) -> Iterator[bytes]:
    """Each bit of the first `header` bytes flipped, then single and triple flips anywhere."""
    for bit in range(8 * min(header, len(good))):
        yield _flipped(good, [bit])
    rng = random.Random(seed)
    for i in range(samples if good else 0):
        yield _flipped(good, [rng.randrange(8 * len(good)) for _ in range(1 if i % 2 else 3)])


def _flipped(good: bytes, bits: list[int]) -> bytes:
    damaged = bytearray(good)
    for bit in bits:
        damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def splices(good: bytes, *, samples: int = 40, seed: int = 3) -> Iterator[bytes]:
    """Parts cut out, doubled, zeroed or filled with noise."""
    rng = random.Random(seed)
    for i in range(samples if len(good) > 1 else 0):
        start = rng.randrange(len(good))
        stop = min(len(good), start + rng.randrange(1, 64))
        middle = (b"", good[start:stop] * 2, bytes(stop - start), rng.randbytes(stop - start))[i % 4]
        yield good[:start] + middle + good[stop:]


def damaged(good: bytes) -> Iterator[bytes]:
    """The whole corpus of one valid input; a few members may still be valid."""
    yield from FORMLESS
    yield from truncations(good)
    yield from extensions(good)
    yield from wrong_sizes(good)
    yield from bit_flips(good)
    yield from splices(good)


# msgpack with wrong lengths, deep nesting, or types that no message has.
HOSTILE_MSGPACK = (
    b"\xdd\xff\xff\xff\xff",  # array of 2**32 - 1
    b"\xdf\xff\xff\xff\xff",  # map of 2**32 - 1
    b"\xdb\xff\xff\xff\xff",  # text of 2**32 - 1 bytes
    b"\xc6\xff\xff\xff\xff",  # binary of 2**32 - 1 bytes
    b"\xc9\xff\xff\xff\xff\x01",  # extension of 2**32 - 1 bytes
    b"\x91" * 100_000,  # nesting
    b"\xdc\x10\x00" * 600 + bytes(8192),  # nested lists that each announce 4096 items
    b"\x81\xa1v" * 100_000,
    b"\x81\xa1v\xd6\xff\0\0\0\0",  # timestamp
    b"\x81\xa1v\xc7\x0c\xff" + b"\xff" * 12,  # timestamp far outside any calendar
    b"\x81\x01\x01",  # key that is not text
    b"\x81\xc0\x01",
    b"\x81\x91\x01\x01",  # key that cannot be hashed
    b"\x81\xa1\xff\x01",  # key that is not UTF-8
    b"\x82\xa1v\x01\xa4type\xa2\xff\xfe",  # text that is not UTF-8
    b"\x82\xa1v\x01\xa4type\xc0",
    b"\x82\xa1v\x01\xa4type\xa6credit",  # fields missing
    b"\x82\xa1v\xcb\x3f\xf0\0\0\0\0\0\0\xa4type\xa6credit",  # version 1.0
    b"\x82\xa1v\xc3\xa4type\xa6credit",  # version true
    b"\xc1",  # never used
    b"\x01\x02",  # two objects
    b"\x80",
)
