"""Reading of versioned msgpack messages under strict limits: what control and decision messages share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import msgpack

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import MessageError, RejectReason

# Largest message that is looked at, decisions aside (decisions.py).
MAX_MESSAGE_SIZE = 1 << 20
MAX_TEXT_LENGTH = 4096
# Items of one list: four times the readout sources of a full detector.  msgpack allocates a list when it sees its
# announced length, and nests up to 511 deep, so this bounds what a hostile message can make it allocate to 17 MB.
MAX_ITEMS = 4096
_VERSION_KEY = "v"


class MessageFields:
    """The fields of one message map; each getter takes a field out and checks it, :meth:`finish` refuses leftovers."""

    __slots__ = ("_fields", "_what")

    def __init__(
        self,
        raw: Buffer,
        *,
        what: str,
        version: int,
        max_size: int = MAX_MESSAGE_SIZE,
        max_containers: int | None = None,
    ) -> None:
        """Unpack `raw` and check its version field.  Raises MessageError.

        `what` names the message in errors.  `max_size` bounds its bytes; `max_containers` bounds its lists and maps,
        itself included, so that a large message of nothing but empty lists cannot take many times its size.
        """
        self._what = what
        self._fields = _unpack_map(raw, what, max_size, max_containers)
        found = self._fields.pop(_VERSION_KEY, None)
        if type(found) is not int or found != version:
            raise MessageError(RejectReason.BAD_VERSION, f"{what}: version {version} expected, {_shown(found)} found")

    def malformed(self, text: str) -> MessageError:
        """The error for a message that is well-formed msgpack but not what it should be."""
        return MessageError(RejectReason.MALFORMED, f"{self._what}: {text}")

    def _take(self, name: str) -> object:
        try:
            return self._fields.pop(name)
        except KeyError:
            raise self.malformed(f"field {name!r} is missing") from None

    def uint(self, name: str, bits: int) -> int:
        """An unsigned integer of at most `bits` bits."""
        return self._checked_uint(name, self._take(name), bits)

    def optional_uint(self, name: str, bits: int) -> int | None:
        """An unsigned integer of at most `bits` bits, or nil."""
        value = self._take(name)
        return None if value is None else self._checked_uint(name, value, bits)

    def _checked_uint(self, name: str, value: object, bits: int) -> int:
        if type(value) is not int or not 0 <= value < 1 << bits:
            raise self.malformed(f"field {name!r}: unsigned integer of {bits} bits expected, {_shown(value)} found")
        return value

    def text(self, name: str) -> str:
        """A string."""
        value = self._take(name)
        if type(value) is not str:
            raise self.malformed(f"field {name!r}: text expected, {_shown(value)} found")
        return value

    def boolean(self, name: str) -> bool:
        """A truth value."""
        value = self._take(name)
        if type(value) is not bool:
            raise self.malformed(f"field {name!r}: true or false expected, {_shown(value)} found")
        return value

    def binary(self, name: str, size: int) -> bytes:
        """Exactly `size` bytes."""
        value = self._take(name)
        if type(value) is not bytes or len(value) != size:
            raise self.malformed(f"field {name!r}: {size} bytes expected, {_shown(value)} found")
        return value

    def uints(self, name: str, bits: int) -> tuple[int, ...]:
        """A list of unsigned integers of at most `bits` bits."""
        return tuple(self._checked_uint(name, item, bits) for item in self._items(name, self._take(name)))

    def ranges(self, name: str, bits: int) -> tuple[tuple[int, int], ...]:
        """A list of pairs first <= last of unsigned integers of at most `bits` bits."""
        ranges: list[tuple[int, int]] = []
        for item in self._items(name, self._take(name)):
            pair = self._items(name, item)
            if len(pair) != 2:
                raise self.malformed(f"field {name!r}: pairs expected, a list of {len(pair)} found")
            first, last = (self._checked_uint(name, end, bits) for end in pair)
            if first > last:
                raise self.malformed(f"field {name!r}: range from {first} to {last}")
            ranges.append((first, last))
        return tuple(ranges)

    def _items(self, name: str, value: object) -> list[object]:
        if type(value) is not list:
            raise self.malformed(f"field {name!r}: list expected, {_shown(value)} found")
        return value

    def finish(self) -> None:
        """Refuse a message that has fields which nobody took."""
        if self._fields:
            raise self.malformed(f"unknown fields {sorted(self._fields)[:8]}")


def _shown(value: object) -> str:
    """A short rendering of a received value, whatever its size."""
    if isinstance(value, (bytes, str, list, dict)):
        return f"{type(value).__name__} of length {len(value)}"
    return repr(value)[:80]


def _limit_containers(limit: int) -> Callable[[object], object]:
    """A hook of msgpack that lets this number of lists and maps pass."""
    seen = count(1)

    def check(container: object) -> object:
        if next(seen) > limit:
            raise ValueError(f"more than {limit} lists and maps")
        return container

    return check


def _unpack_map(raw: Buffer, what: str, max_size: int, max_containers: int | None) -> dict[str, object]:
    if len(raw) > max_size:
        raise MessageError(RejectReason.OVERSIZED, f"{what}: message of {len(raw)} bytes, at most {max_size} are read")
    hook = None if max_containers is None else _limit_containers(max_containers)
    try:
        value = msgpack.unpackb(
            raw,
            raw=False,
            strict_map_key=True,
            max_str_len=MAX_TEXT_LENGTH,
            max_bin_len=max_size,
            max_array_len=min(MAX_ITEMS, len(raw)),
            max_map_len=64,
            max_ext_len=0,
            list_hook=hook,
            object_hook=hook,
        )
    # The text of an error, as its representation may hold the rest of the message.
    # msgpack raises ValueError (and subclasses) for bad bytes and limits; its own hierarchy for formats and depth.
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise MessageError(
            RejectReason.MALFORMED, f"{what}: not a msgpack message: {type(error).__name__}: {error!s:.200}"
        ) from error
    if type(value) is not dict or not all(type(key) is str for key in value):
        raise MessageError(RejectReason.MALFORMED, f"{what}: map with text keys expected, {_shown(value)} found")
    return value


def pack_message(fields: dict[str, Any], *, what: str, version: int, max_size: int = MAX_MESSAGE_SIZE) -> bytes:
    """`fields` with their version as msgpack.  Raises MessageError for what cannot be packed or is too large."""
    try:
        packed = bytes(msgpack.packb({_VERSION_KEY: version, **fields}, use_bin_type=True))
    except (ValueError, TypeError, OverflowError) as error:
        raise MessageError(RejectReason.MALFORMED, f"{what}: cannot be packed: {error!r:.200}") from error
    if len(packed) > max_size:
        raise MessageError(
            RejectReason.OVERSIZED, f"{what}: message of {len(packed)} bytes, at most {max_size} are sent"
        )
    return packed
