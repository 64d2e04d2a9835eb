"""The encoding of protocol buffers, as far as ONNX files need it (https://protobuf.dev/programming-guides/encoding)."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.selection.errors import ModelError

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_LENGTHS = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


class Message:
    """The fields of a message by their numbers. Its methods raise ModelError for a field of another type."""

    def __init__(self, content: bytes) -> None:
        self._fields: Mapping[int, Sequence[int | bytes]] = _fields(content)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def messages(self, number: int) -> "list[Message]":
        """The messages of a repeated field."""
        return [Message(content) for content in self._all(number)]

    def message(self, number: int) -> "Message":
        """The message of a field; an empty one if it is not there."""
        content = self._all(number)
        return Message(content[-1] if content else b"")

    def texts(self, number: int) -> list[str]:
        """The texts of a repeated field."""
        try:
            return [content.decode() for content in self._all(number)]
        except UnicodeDecodeError as error:
            raise ModelError(f"field {number} is no text: {error}") from error

    def text(self, number: int) -> str:
        """The text of a field; empty if it is not there."""
        return "".join(self.texts(number)[-1:])

    def content(self, number: int) -> bytes:
        """The bytes of a field; empty if it is not there."""
        return b"".join(self._all(number)[-1:])

    def integer(self, number: int, default: int = 0) -> int:
        """The signed number of a field."""
        found = self.integers(number)
        return found[-1] if found else default

    def integers(self, number: int) -> list[int]:
        """The signed numbers of a repeated field, packed or not."""
        found: list[int] = []
        for value in self._fields.get(number, ()):
            found += [value] if isinstance(value, int) else _varints(value)
        return [value - (value >> 63 << 64) for value in found]

    def number(self, number: int, default: float) -> float:
        """The single-precision number of a field."""
        found = self.floats(number)
        return float(found[-1]) if len(found) else default

    def floats(self, number: int) -> NDArray[np.float32]:
        """The single-precision numbers of a repeated field, packed or not."""
        return self._numbers(number, 4).view("<f4")

    def doubles(self, number: int) -> NDArray[np.float64]:
        """The double-precision numbers of a repeated field, packed or not."""
        return self._numbers(number, 8).view("<f8")

    def _numbers(self, number: int, size: int) -> NDArray[np.uint8]:
        content = b"".join(self._all(number))
        if len(content) % size:
            raise ModelError(f"field {number} has {len(content)} bytes, no whole numbers of {size}")
        return np.frombuffer(content, np.uint8)

    def _all(self, number: int) -> list[bytes]:
        found = self._fields.get(number, ())
        if any(isinstance(value, int) for value in found):
            raise ModelError(f"field {number} has another type")
        return [value for value in found if isinstance(value, bytes)]


def _fields(content: bytes) -> dict[int, list[int | bytes]]:
    """Numbers of fields, and their values in order: an integer, or bytes."""
    found: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(content):
        tag, at = _varint(content, at)
        number, kind = tag >> 3, tag & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(content, at)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES, _BYTES):
            length, at = (_LENGTHS[kind], at) if kind in _LENGTHS else _varint(content, at)
            value = content[at : at + length]
            if len(value) != length:
                raise ModelError(f"the content ends in field {number}")
            at += length
        else:
            raise ModelError(f"field {number} has the unknown type {kind}")
        found.setdefault(number, []).append(value)
    return found


def _varints(content: bytes) -> list[int]:
    found, at = [], 0
    while at < len(content):
        value, at = _varint(content, at)
        found.append(value)
    return found


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits in groups of 7, and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(content):
            raise ModelError("the content ends in a number")
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise ModelError("a number of more than 64 bits")
