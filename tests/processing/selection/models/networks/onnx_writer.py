"""ONNX files of a few fields, encoded here, so that tests need no library."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

Value = int | float | str | bytes
Values = Value | Sequence[int] | Sequence[float] | Sequence[str]


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def message(*fields: tuple[int, Value]) -> bytes:
    """A message: integers as varints, floats in four bytes, the rest with a length."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            found += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            content = value.encode() if isinstance(value, str) else value
            found += varint(number << 3 | 2) + varint(len(content)) + content
    return found


def tensor(name: str, values: object, *, kind: int = 1, more: Sequence[tuple[int, Value]] = ()) -> bytes:
    array = np.array(values, np.float32 if kind == 1 else np.float64)
    return message(*((1, n) for n in array.shape), (2, kind), (8, name), (9, array.tobytes()), *more)


def attribute(name: str, value: Values) -> bytes:
    """Bytes are a tensor; a list has one type. Field 20 is the type."""
    if isinstance(value, (int, float, str, bytes)):
        number, kind = {int: (3, 2), float: (2, 1), str: (4, 3), bytes: (5, 4)}[type(value)]
        return message((1, name), (number, value), (20, kind))
    number, kind = {int: (8, 7), float: (7, 6), str: (9, 8)}[type(value[0])]
    return message((1, name), *((number, each) for each in value), (20, kind))


def node(op: str, inputs: str, outputs: str, *, domain: str = "", **attributes: Values) -> bytes:
    """inputs, outputs: names with a space between them; a name of "-" is left out, as ONNX has it."""
    return message(
        *((1, name.strip("-")) for name in inputs.split()),
        *((2, name.strip("-")) for name in outputs.split()),
        (4, op),
        *((5, attribute(name, value)) for name, value in attributes.items()),
        *([(7, domain)] if domain else []),
    )


def value(name: str, *shape: int, kind: int = 1) -> bytes:
    dimensions = message(*((1, message((1, n))) for n in shape))
    return message((1, name), (2, message((1, message((1, kind), (2, dimensions))))))


def file(
    nodes: Sequence[bytes],
    tensors: Sequence[bytes],
    *,
    inputs: Sequence[bytes] = (value("x", 0, 2),),
    outputs: Sequence[bytes] = (value("y", 0, 1),),
    opset: int = 17,
    more: Sequence[tuple[int, Value]] = (),
) -> bytes:
    graph = message(
        *((1, each) for each in nodes),
        *((5, each) for each in tensors),
        *((11, each) for each in inputs),
        *((12, each) for each in outputs),
    )
    return message((1, 8), (7, graph), (8, message((1, ""), (2, opset))), *more)


WEIGHTS = tensor("w", [[1.0], [2.0]])
"""For two features and one result."""
LAYER = node("MatMul", "x w", "y")
