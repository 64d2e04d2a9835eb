"""Lists of values by name, as list banks and decision messages carry them: the description of a list and its values.

Format: docs/formats/list-banks.md, "Description".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hltnode.protocol.buffers import padded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = Mapping[str, NDArray[Any]]

MAX_VALUES = 255
MAX_NAME = 255
_TYPES = {f"{kind}{size}" for kind in "uif" for size in (1, 2, 4, 8)} - {"f1"}
_COUNT = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class ListDescription:
    """Name of a list, and the type of each of its values by name: kind u, i or f, and bytes, such as "u4"."""

    name: str
    values: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """The description, padded to words of 32 bits. Raises ValueError for what a description cannot hold."""
        if not 0 < len(self.values) <= MAX_VALUES:
            raise ValueError(f"list {self.name}: {len(self.values)} values, 1 to {MAX_VALUES} expected")
        parts = [_text(self.name), bytes([len(self.values)])]
        for name, kind in self.values.items():
            if kind not in _TYPES:
                raise ValueError(f"list {self.name}: value {name} has the type {kind}")
            parts += [kind[0].encode(), bytes([int(kind[1:])]), _text(name)]
        text = b"".join(parts)
        return text.ljust(padded(len(text), 2), b"\0")

    def content_size(self, n: int) -> int:
        """Bytes of the values of n elements, each value padded to words."""
        return sum(padded(n * int(kind[1:]), 2) for kind in self.values.values())

    def content(self, raw: memoryview, n: int) -> dict[str, NDArray[Any]]:
        """The values of n elements at the start of `raw`. Raises ValueError if they end before."""
        import numpy as np  # a feeder needs no NumPy

        if len(raw) < self.content_size(n):
            raise ValueError(f"list {self.name}: {len(raw)} bytes for {n} elements of {self.content_size(n)}")
        found: dict[str, NDArray[Any]] = {}
        at = 0
        for name, kind in self.values.items():
            size = n * int(kind[1:])
            found[name] = np.frombuffer(raw[at : at + size], f"<{kind}")
            at += padded(size, 2)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ValueList:
    """The list of several events. offsets: u32[n + 1], the first element of each event; values: one element each."""

    offsets: NDArray[np.uint32]
    values: Values

    def of_event(self, event: int) -> dict[str, NDArray[Any]]:
        """The values of one event."""
        begin, end = int(self.offsets[event]), int(self.offsets[event + 1])
        return {name: values[begin:end] for name, values in self.values.items()}


def read_description(raw: memoryview) -> tuple[ListDescription, int]:
    """A description at the start of `raw`, and its size in bytes. Raises ValueError."""
    name, at = _read_text(raw, 0)
    if at >= len(raw):
        raise ValueError("a description ends before the number of its values")
    n_values = raw[at]
    at += 1
    values: dict[str, str] = {}
    for _ in range(n_values):
        kind = bytes(raw[at : at + 1]).decode("ascii", "replace") + str(raw[at + 1] if at + 1 < len(raw) else "")
        if kind not in _TYPES:
            raise ValueError(f"list {name}: a value has the type {kind!r}")
        value, at = _read_text(raw, at + 2)
        values[value] = kind
    if len(values) != n_values or n_values == 0:
        raise ValueError(f"list {name}: {len(values)} names for {n_values} values")
    return ListDescription(name, values), padded(at, 2)


def encode_block(description: ListDescription, content: ValueList | None, text: bytes | None = None) -> bytes:
    """A list of the events of a MEP for a decision message; None: it is left out. text: the bytes of the description,
    where a program keeps them."""
    import numpy as np

    text = description.to_bytes() if text is None else text
    body = _COUNT.pack(0)
    if content is not None:
        values = b"".join(
            np.ascontiguousarray(content.values[name], f"<{kind}")
            .tobytes()
            .ljust(padded(len(content.values[name]) * int(kind[1:]), 2), b"\0")
            for name, kind in description.values.items()
        )
        body = _COUNT.pack(len(content.offsets) - 1) + content.offsets.astype("<u4").tobytes() + values
    return _COUNT.pack(4 + len(text) + len(body)) + text + body


def decode_blocks(raw: memoryview, n_events: int) -> dict[str, ValueList | None]:
    """The lists of a decision message on n events by name; None for one that is left out.

    Raises ValueError for blocks that are cut, contradict themselves, or have another number of events.
    """
    found: dict[str, ValueList | None] = {}
    while raw:
        size = _COUNT.unpack_from(raw)[0] if len(raw) >= _COUNT.size else 0
        if not 3 * _COUNT.size <= size <= len(raw) or size % 4:
            raise ValueError(f"a list of {size} bytes in {len(raw)} bytes")
        block, raw = raw[_COUNT.size : size], raw[size:]
        description, at = read_description(block)
        if len(block) < at + _COUNT.size or description.name in found:
            raise ValueError(f"list {description.name}: cut, or there twice")
        (n,) = _COUNT.unpack_from(block, at)
        found[description.name] = None if n == 0 else _events(description, block[at + _COUNT.size :], n, n_events)
    return found


def _events(description: ListDescription, raw: memoryview, n: int, n_events: int) -> ValueList:
    import numpy as np

    size = 4 * (n + 1)
    if n != n_events or len(raw) < size:
        raise ValueError(f"list {description.name}: {n} events in {len(raw)} bytes, {n_events} expected")
    offsets = np.frombuffer(raw[:size], "<u4")
    if offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"list {description.name}: its offsets do not ascend from 0")
    n_elements = int(offsets[-1])
    if len(raw) != size + description.content_size(n_elements):
        raise ValueError(f"list {description.name}: {len(raw) - size} bytes for {n_elements} elements")
    return ValueList(offsets, description.content(raw[size:], n_elements))


def _text(name: str) -> bytes:
    text = name.encode("ascii")
    if not 0 < len(text) <= MAX_NAME:
        raise ValueError(f"name {name!r}: 1 to {MAX_NAME} letters expected")
    return bytes([len(text)]) + text


def _read_text(raw: memoryview, at: int) -> tuple[str, int]:
    end = at + 1 + (raw[at] if at < len(raw) else 0)
    text = bytes(raw[at + 1 : end])
    if end > len(raw) or not text or not text.isascii() or not text.decode("ascii").isidentifier():
        raise ValueError(f"{text!r} is no name of a list or a value")
    return text.decode("ascii"), end
