"""The byte buffers that every parser accepts."""

from __future__ import annotations

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


def byte_view(buffer: Buffer) -> memoryview:
    """A flat view of unsigned bytes over `buffer`, without a copy."""
    view = memoryview(buffer)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def padded(size: int, align: int) -> int:
    """`size` rounded up to a multiple of 2**`align` bytes."""
    mask = (1 << align) - 1
    return (size + mask) & ~mask
