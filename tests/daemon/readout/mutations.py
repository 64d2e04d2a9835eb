"""Frames and control messages that are wrong in one or several places, made from valid ones; reproducible by a seed.

Frames: fields at and beside their bounds, lengths that lie, arrays of the MFP that contradict it, whole parts taken
from other frames; with the right CRC most of the time, so that what lies behind its check is reached. Control messages:
made from the declared fields of the message classes, so that new messages and fields take part without a change here.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, get_args

import msgpack
import msgspec
from crc32c import crc32c

from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.control_messages import CONTROL_VERSION, ControlMessage
from hltnode.protocol.transport.frame_header import HEADER_SIZE, encode_frame
from tests.protocol import fuzz

_DECLARED = [
    declared
    for declared in msgspec.inspect.multi_type_info(get_args(ControlMessage))
    if isinstance(declared, msgspec.inspect.StructType)
]
MESSAGE_NAMES = frozenset(declared.cls.__name__ for declared in _DECLARED)

# Offset and layout of each field.
_HEADER_FIELDS = (
    (0, "I"),
    (4, "H"),
    (6, "H"),
    (8, "I"),
    (12, "I"),
    (16, "Q"),
    (24, "Q"),
    (32, "H"),
    (34, "H"),
    (36, "I"),
)
_MFP_FIELDS = ((48, "H"), (50, "H"), (52, "I"), (56, "Q"), (64, "H"), (66, "B"), (67, "B"))
_TYPES_AT = 68
_MASKS = {layout: (1 << 8 * struct.calcsize(layout)) - 1 for layout in "BHIQ"}


class FrameSource:
    """Valid frames of any source and MEP."""

    def __init__(self, events_per_mep: int, max_fragment: int) -> None:
        self._events = events_per_mep
        self._max_fragment = max_fragment
        self._templates: dict[tuple[int, int, int], bytes] = {}

    def frame(self, rng: Random, run: int, mep: int, source: int, *, events: int | None = None) -> bytearray:
        """A valid frame; its MFP is one of some for each source and number of events."""
        n = self._events if events is None else events
        which = source, n, rng.randrange(4)
        template = self._templates.get(which)
        if template is None:
            template = self._templates[which] = self._template(*which)
        frame = bytearray(template)
        struct.pack_into("<I", frame, 8, run)
        struct.pack_into("<Q", frame, 16, mep)
        struct.pack_into("<Q", frame, HEADER_SIZE + 8, mep * self._events & _MASKS["Q"])
        seal(frame)
        return frame

    def _template(self, source: int, n: int, variant: int) -> bytes:
        rng = Random(source << 16 | n << 2 | variant)
        types = [rng.choice((1, 2, 254, 255)) for _ in range(n)]
        fragments = [b"" if it == 255 else rng.randbytes(rng.randrange(self._max_fragment)) for it in types]
        mfp = encode_mfp(source_id=source, event_id=0, version=1, types=types, fragments=fragments, align=2 + variant)
        return encode_frame(mfp, run=0, mep_id=0, source_id=source)


def seal(frame: bytearray) -> None:
    """Write the correct CRC of the frame."""
    if len(frame) >= HEADER_SIZE:
        checked = bytes(memoryview(frame)[:36])
        struct.pack_into("<I", frame, 36, crc32c(memoryview(frame)[HEADER_SIZE:], crc32c(checked)))


def beside(rng: Random, value: int, mask: int) -> int:
    """A value at a bound, beside `value`, or with one of its bits flipped."""
    kind = rng.randrange(9)
    if kind == 0:
        return 0
    if kind == 1:
        return mask
    if kind == 2:
        return mask - 1
    if kind == 3:
        return (mask >> 1) + rng.randrange(2)
    if kind == 4:
        return rng.randrange(4) & mask
    if kind == 5:
        return rng.getrandbits(64) & mask
    if kind == 6:
        return value ^ 1 << rng.randrange(mask.bit_length())
    return (value + (1 if kind == 7 else -1)) & mask


def _change_field(rng: Random, frame: bytearray, fields: Sequence[tuple[int, str]]) -> None:
    at, layout = rng.choice(fields)
    size = struct.calcsize(layout)
    if at + size <= len(frame):
        (value,) = struct.unpack_from("<" + layout, frame, at)
        struct.pack_into("<" + layout, frame, at, beside(rng, value, _MASKS[layout]))


def header_field(rng: Random, frame: bytearray) -> None:
    """A field of the transport header."""
    _change_field(rng, frame, _HEADER_FIELDS)


def mfp_field(rng: Random, frame: bytearray) -> None:
    """A field of the MFP's header."""
    _change_field(rng, frame, _MFP_FIELDS)


def mfp_array(rng: Random, frame: bytearray) -> None:
    """A type or a size of a fragment."""
    if len(frame) < _TYPES_AT:
        return
    (n,) = struct.unpack_from("<H", frame, 42)
    i = rng.randrange(max(1, n))
    sizes_at = HEADER_SIZE + (20 + n + 3 & ~3)
    if rng.randrange(2) and _TYPES_AT + i < len(frame):
        frame[_TYPES_AT + i] = rng.choice((0, 1, 17, 48, 254, 255, frame[_TYPES_AT + i] ^ 1))
    elif sizes_at + 2 * i + 2 <= len(frame):
        _change_field(rng, frame, ((sizes_at + 2 * i, "H"),))


def cut_or_extend(rng: Random, frame: bytearray) -> None:
    """Bytes at the end are missing or too many, at a boundary of the structure or anywhere."""
    if rng.randrange(3) == 0:
        frame += rng.randbytes(rng.choice((1, 3, 4, 8, 64)))
    else:
        bounds = (0, 1, 35, 36, 39, 40, 41, 47, 48, 49, 67, 68, 69, len(frame) - 8, len(frame) - 4, len(frame) - 1)
        length = rng.choice(bounds) if rng.randrange(2) else rng.randrange(len(frame) + 1)
        del frame[max(0, length) :]


def true_length(rng: Random, frame: bytearray) -> None:
    """The header, and sometimes the MFP, announce the length that there is."""
    if len(frame) >= HEADER_SIZE:
        struct.pack_into("<I", frame, 12, len(frame) - HEADER_SIZE)
        if len(frame) >= _TYPES_AT and rng.randrange(2):
            struct.pack_into("<I", frame, HEADER_SIZE + 4, len(frame) - HEADER_SIZE)


def cut_and_announce(rng: Random, frame: bytearray) -> None:
    """Another length, and announced truly."""
    cut_or_extend(rng, frame)
    true_length(rng, frame)


def flip_bits(rng: Random, frame: bytearray) -> None:
    """Up to four bits anywhere."""
    if frame:
        for _ in range(rng.randrange(1, 5)):
            bit = rng.randrange(8 * len(frame))
            frame[bit >> 3] ^= 1 << (bit & 7)


def splice(rng: Random, frame: bytearray) -> None:
    """A stretch is cut out, doubled, zeroed or filled with noise."""
    if frame:
        start = rng.randrange(len(frame))
        stop = min(len(frame), start + rng.randrange(1, 64))
        middle = (b"", frame[start:stop] * 2, bytes(stop - start), rng.randbytes(stop - start))
        frame[start:stop] = middle[rng.randrange(4)]


def noise_behind_header(rng: Random, frame: bytearray) -> None:
    """A header, and bytes without structure."""
    frame[HEADER_SIZE:] = rng.randbytes(rng.choice((0, 1, 19, 20, 21, 60, 300)))
    true_length(rng, frame)


FRAME_MUTATIONS: tuple[Callable[[Random, bytearray], None], ...] = (
    header_field,
    header_field,
    mfp_field,
    mfp_field,
    mfp_array,
    mfp_array,
    cut_or_extend,
    cut_and_announce,
    flip_bits,
    splice,
    noise_behind_header,
)


def mutate_frame(rng: Random, frame: bytearray) -> None:
    """One change, sometimes up to three; then the right CRC, three times out of four."""
    rng.choice(FRAME_MUTATIONS)(rng, frame)
    while rng.randrange(4) == 0:
        rng.choice(FRAME_MUTATIONS)(rng, frame)
    if rng.randrange(4):
        seal(frame)


# Control messages

Hints = Mapping[str, Sequence[object]]
"""Values of fields, by name, that are meaningful in the current state of the node."""

_NAMES = ("a", "b", "c", "d", "f1", "f2", "x" * 64, "é", "", "a b", "x" * 65, "-", "\n", "a\n")
_TEXTS = ("", "text", "x" * 1000, "é" * 1000, "x" * 1001, "\0", "\ud7ff")
_NESTED: list[object] = []
for _ in range(60):
    _NESTED = [_NESTED]
# Values that are invalid for all or most fields.
HOSTILE_VALUES: tuple[object, ...] = (
    *(None, True, False, -1, 1 << 16, 1 << 32, (1 << 32) - 1, 1 << 63, (1 << 64) - 1, -(1 << 63), 1.0, 1e308),
    *(float("nan"), "", "7", "x" * 5000, b"", b"\xff" * 20, [], {}, [[]], [1], [[1, 2]], [[2, 1]], [[1, 2, 3]], [[1]]),
    *(
        [0] * 5000,
        [[i, i] for i in range(2000)],
        [[0, (1 << 64) - 1]] * 3,
        {"a": {"b": [1]}},
        _NESTED,
        msgpack.Timestamp(0),
    ),
)


def any_value(rng: Random, kind: Any, name: str, hints: Hints) -> object:
    """A value of a declared type: often one that means something now, else one at a bound."""
    if rng.randrange(4) and name in hints:
        return rng.choice(hints[name])
    inspect = msgspec.inspect
    match kind:
        case inspect.IntType():
            low = kind.ge or 0
            high = (1 << 64) - 1 if kind.le is None else kind.le
            return rng.choice((low, low + 1, low + 2, low + 7, high, high - 1, high >> 1, rng.randint(low, high)))
        case inspect.BoolType():
            return rng.randrange(2) == 1
        case inspect.StrType():
            fitting = [text for text in _NAMES if kind.pattern and re.search(kind.pattern, text)]
            return rng.choice(fitting[:6] or _TEXTS)
        case inspect.EnumType():
            return rng.choice(list(kind.cls)).value
        case inspect.NoneType():
            return None
        case inspect.UnionType():
            return any_value(rng, rng.choice(kind.types), name, hints)
        case inspect.VarTupleType():
            length = rng.choice((0, 1, 1, 2, 5, rng.randrange(40), min(kind.max_length or 300, 300)))
            return [any_value(rng, kind.item_type, f"{name}[]", hints) for _ in range(length)]
        case inspect.TupleType():
            return [any_value(rng, item, f"{name}[]", hints) for item in kind.item_types]
    raise TypeError(f"field {name}: no values are made for {kind}")


def any_fields(rng: Random, hints: Hints) -> dict[str, object]:
    """Version, type and fields of a message of any class."""
    declared = rng.choice(_DECLARED)
    values = {field.encode_name: any_value(rng, field.type, field.name, hints) for field in declared.fields}
    return {"v": CONTROL_VERSION, "type": declared.tag, **values}


def mutate_fields(rng: Random, fields: dict[str, object]) -> None:
    """A field is missing, too many, of a wrong type or beyond its bounds; or version or type are not its own."""
    name = rng.choice(list(fields))
    kind = rng.randrange(6)
    if kind == 0:
        del fields[name]
    elif kind == 1:
        fields[rng.choice(("extra", "Run", "", "x" * 100))] = rng.choice(HOSTILE_VALUES)
    elif kind == 2:
        fields["v"] = rng.choice((*HOSTILE_VALUES, CONTROL_VERSION - 1, CONTROL_VERSION + 1))
    elif kind == 3:
        fields["type"] = rng.choice(_DECLARED).tag
    else:
        fields[name] = _mutated_value(rng, fields[name])


def _mutated_value(rng: Random, value: object) -> object:
    if isinstance(value, list) and value and rng.randrange(2):
        changed = list(value)
        i = rng.randrange(len(changed))
        changed[i] = _mutated_value(rng, changed[i])
        return changed
    if type(value) is int and rng.randrange(2):
        return beside(rng, value, rng.choice((0xFFFF, 0xFFFF_FFFF, (1 << 64) - 1)))
    return rng.choice(HOSTILE_VALUES)


def _announce(rng: Random, raw: bytearray) -> None:
    """A byte of msgpack announces a wrong length or type."""
    at = rng.randrange(len(raw))
    raw[at : at + 1] = rng.choice(
        (b"\xdd\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xdb\x7f\xff\xff\xff", b"\xdf\x00\x01\x00\x00")
    )


_ANNOUNCEMENTS = (b"\xdd\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xdb\x7f\xff\xff\xff", b"\xdf\x00\x01\x00\x00")
MESSAGE_BYTE_MUTATIONS: tuple[Callable[[Random, bytearray], None], ...] = (flip_bits, splice, cut_or_extend, _announce)


def any_message(rng: Random, hints: Hints) -> bytes:
    """A control message: half of them as their class declares, the others changed in fields, bytes or both."""
    if rng.randrange(64) == 0:
        return rng.choice((*fuzz.HOSTILE_MSGPACK, *fuzz.FORMLESS))
    fields = any_fields(rng, hints)
    kind = rng.randrange(8)
    if kind in (4, 5, 6):
        mutate_fields(rng, fields)
    raw = bytearray(msgpack.packb(fields))
    if kind in (6, 7) and raw:
        rng.choice(MESSAGE_BYTE_MUTATIONS)(rng, raw)
    return bytes(raw)
