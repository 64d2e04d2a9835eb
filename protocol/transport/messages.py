"""Versioned msgpack messages with strict limits: base class, encoding and decoding."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgpack
import msgspec

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import MessageError, MessageVersionError, RejectReason

# Size limit of received messages, except decisions (decisions.py).
MAX_MESSAGE_SIZE = 1 << 20
# Size limit of one text in bytes.
MAX_TEXT_LENGTH = 4096
# Maximum number of letters of a text for people: any such text fits MAX_TEXT_LENGTH bytes.
MAX_REMARK_LENGTH = 1000
# A host name has up to 63 letters.
MAX_NAME_LENGTH = 64
# Maximum number of ranges of one message: 19 kB.
MAX_RANGES = 1024
# Maximum number of items of one list: four times the readout sources of a full detector. msgpack allocates a list when
# it reads its announced length, and nests up to 511 levels. So this limits the allocations of a hostile message to 17
# MB.
MAX_ITEMS = 4096
_VERSION_KEY = "v"
_TYPE_KEY = "type"
_MAX_SHOWN = 200
_BUILTIN_TYPES = (bytes,)
_LIMITS: dict[str, Any] = {
    "raw": False,
    "strict_map_key": True,
    "max_str_len": MAX_TEXT_LENGTH,
    "max_map_len": 64,
    "max_ext_len": 0,
}

# msgpack raises ValueError (and subclasses) for bad bytes and limits, and its own hierarchy for formats and depth.
_UNPACK_ERRORS = (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException)

U16: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
U32: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF_FFFF)]
# msgpack has no integers above 64 bits.
U64: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
MAX_MEP_ID = (1 << 64) - 2
"""Last id of a MEP: a feeder confirms its last MEP with a `first_mep` above it, and that has 64 bits too."""
Range: TypeAlias = tuple[U64, U64]
Ranges: TypeAlias = Annotated[tuple[Range, ...], msgspec.Meta(max_length=MAX_RANGES)]
# Names of processes and sessions: log lines, status pages and other messages contain them unchanged.
_NAME = r"\A[A-Za-z0-9._:/-]+\Z"
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH, pattern=_NAME)]
Remark: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_REMARK_LENGTH)]


def _wire_name(class_name: str) -> str:
    """EndOfRun is "end_of_run"."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in class_name).lstrip("_")


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field=_TYPE_KEY, tag=_wire_name):
    """Base class of messages: a subclass declares the fields in wire order, with types and ranges.

    The field "type" on the wire is the class name in lower case with underscores between words, unless the class sets
    another one as `tag`.
    """

    def check(self) -> None:
        """Raise ValueError if fields contradict one another, even if each one is valid."""


def is_name(text: str) -> bool:
    """True if a message can carry `text` as a name."""
    return len(text) <= MAX_NAME_LENGTH and re.search(_NAME, text) is not None


def as_remark(text: str) -> str:
    """`text` in a form that fits a message: characters outside UTF-8 are replaced, the middle of a long text is cut."""
    text = text.encode(errors="replace").decode()
    half = MAX_REMARK_LENGTH // 2 - 1
    return text if len(text) <= MAX_REMARK_LENGTH else f"{text[:half]}…{text[-half:]}"


def check_ranges(name: str, ranges: Ranges) -> None:
    """Raise ValueError unless first <= last in every range of the field `name`."""
    for first, last in ranges:
        if first > last:
            raise ValueError(f"range from {first} to {last} - at `$.{name}`")


AnyMessage = TypeVar("AnyMessage", bound=Message)


class MessageCodec(Generic[AnyMessage]):
    """Encodes and decodes one family of messages.

    Args:
        types: the messages of the family.
        what: name of the messages in errors.
        version: version of the wire format, the value of the field "v".
        change: difference from the previous version; the error about a message of another version quotes it.
        max_size: maximum size of a message in bytes.
        max_containers: maximum number of lists and maps of a message, itself included. It keeps a message of empty
            lists from taking many times its size in memory.
    """

    __slots__ = ("_change", "_limits", "_max_containers", "_max_size", "_types", "_version", "_what")

    def __init__(
        self,
        *types: type[AnyMessage],
        what: str,
        version: int,
        change: str = "",
        max_size: int = MAX_MESSAGE_SIZE,
        max_containers: int | None = None,
    ) -> None:
        self._types: dict[object, type[AnyMessage]] = {it.__struct_config__.tag: it for it in types}
        self._what = what
        self._version = version
        self._change = change
        self._max_size = max_size
        self._max_containers = max_containers
        self._limits: dict[str, Any] = {**_LIMITS, "max_bin_len": max_size}

    def encode(self, message: AnyMessage) -> bytes:
        """The message as msgpack.  Raises MessageError for a message that :meth:`decode` would refuse."""
        packed = self.pack(message)
        self.decode(packed)
        return packed

    def pack(self, message: AnyMessage) -> bytes:
        """The message as msgpack, without decoding it again, which takes most of the time of :meth:`encode`.

        For messages that this process makes from values in their ranges, on a path where microseconds count.  Raises
        MessageError for fields that contradict one another, and for a message that is too large.
        """
        try:
            message.check()
            fields = msgspec.to_builtins(message, builtin_types=_BUILTIN_TYPES)
            packed: bytes = msgpack.packb({_VERSION_KEY: self._version, **fields}, use_bin_type=True)
        except (ValueError, TypeError, OverflowError) as error:
            raise self._malformed(f" of type {message.__struct_config__.tag!r}: cannot be packed", error) from error
        if len(packed) > self._max_size:
            raise MessageError(
                RejectReason.OVERSIZED,
                f"{self._what}: message of {len(packed)} bytes, at most {self._max_size} are allowed",
            )
        return packed

    def encode_for(self, version: int, message: AnyMessage) -> bytes:
        """The message for a peer of another version; its fields must be the same there.  Raises MessageError."""
        fields = msgpack.unpackb(self.encode(message))
        packed: bytes = msgpack.packb({**fields, _VERSION_KEY: version}, use_bin_type=True)
        return packed

    def decode(self, raw: Buffer) -> AnyMessage:
        """The message in `raw`.

        Raises MessageError for anything except a known message of this version: unknown type, missing or unknown field,
        wrong type or range, limit exceeded.
        """
        fields = self._unpack(raw)
        version = fields.pop(_VERSION_KEY, None)
        if type(version) is not int or version != self._version:
            text = f"{self._what}: version {self._version} expected, {_shown(version)} found"
            text = f"{text}; {self._change}" if self._change else text
            raise MessageVersionError(text, version if type(version) is int else None)
        name = fields.get(_TYPE_KEY)
        message_type = self._types.get(name) if type(name) is str else None
        if message_type is None:
            known = f"{name:.80}" if type(name) is str else _shown(name)
            raise MessageError(RejectReason.MALFORMED, f"{self._what}: unknown type {known!r}")
        try:
            # Without builtin_types, msgspec would decode text as base64 where bytes are expected.
            message = msgspec.convert(fields, message_type, strict=True, builtin_types=_BUILTIN_TYPES)
            message.check()
        except ValueError as error:
            raise self._malformed(f" of type {name!r}", error) from error
        return message

    def _unpack(self, raw: Buffer) -> dict[str, object]:
        if len(raw) > self._max_size:
            raise MessageError(
                RejectReason.OVERSIZED,
                f"{self._what}: message of {len(raw)} bytes, at most {self._max_size} are allowed",
            )
        hook = None if self._max_containers is None else _limit_containers(self._max_containers)
        try:
            fields = msgpack.unpackb(
                raw, max_array_len=min(MAX_ITEMS, len(raw)), list_hook=hook, object_hook=hook, **self._limits
            )
        # Use the text of the error: its representation may hold the rest of the message.
        except _UNPACK_ERRORS as error:
            raise self._malformed(f"{self._place_of_damage(raw)}: not a msgpack message", error) from error
        if type(fields) is not dict or not all(type(key) is str for key in fields):
            raise MessageError(
                RejectReason.MALFORMED, f"{self._what}: map with text keys expected, {_shown(fields)} found"
            )
        return fields

    def _place_of_damage(self, raw: Buffer) -> str:
        """Type and field of a message that cannot be unpacked, if readable, for the error's text."""
        if len(raw) > MAX_MESSAGE_SIZE:
            # The unpacker copies its input step by step.
            return ""
        # The map of the message does not count: its header is read separately.
        hook = None if self._max_containers is None else _limit_containers(self._max_containers - 1)
        unpacker = msgpack.Unpacker(
            max_buffer_size=MAX_MESSAGE_SIZE,
            max_array_len=min(MAX_ITEMS, len(raw)),
            list_hook=hook,
            object_hook=hook,
            **self._limits,
        )
        unpacker.feed(raw)
        named = field = ""
        try:
            for _ in range(unpacker.read_map_header()):
                field = ""
                field = f", field {_cut(str(unpacker.unpack()))!r}"
                value = unpacker.unpack()
                if field == f", field {_TYPE_KEY!r}":
                    named = f" of type {_cut(str(value))!r}"
        except _UNPACK_ERRORS:
            return named + field
        return named

    def _malformed(self, where: str, error: Exception) -> MessageError:
        return MessageError(RejectReason.MALFORMED, f"{self._what}{where}: {_cut(str(error) or type(error).__name__)}")


def _limit_containers(limit: int) -> Callable[[object], object]:
    """Returns a msgpack hook that accepts at most this number of lists and maps."""
    seen = count(1)

    def check(container: object) -> object:
        if next(seen) > limit:
            raise ValueError(f"more than {limit} lists and maps")
        return container

    return check


def _shown(value: object) -> str:
    """A short rendering of a received value of any size."""
    if isinstance(value, (bytes, str, list, dict)):
        return f"{type(value).__name__} of length {len(value)}"
    return repr(value)[:80]


def _cut(text: str) -> str:
    """`text`, without its middle if it is long: the found value may be long, and the field name is at the end."""
    half = _MAX_SHOWN // 2
    return text if len(text) <= _MAX_SHOWN else f"{text[:half]}…{text[-half:]}"
