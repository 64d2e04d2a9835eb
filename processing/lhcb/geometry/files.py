"""Reading of the LHCb geometry files: little-endian numbers after counts, every count and value checked."""

from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.errors import GeometryError


class GeometryFile:
    """The content of a geometry file, read from front to back.

    Every method raises GeometryError, which names the file and what is wrong, if the file does not hold the requested
    values.
    """

    def __init__(self, path: Path, content: bytes) -> None:
        self.path = path
        self._content = content
        self._at = 0

    @classmethod
    def read(cls, path: Path) -> Self:
        """The file at `path`."""
        try:
            return cls(path, path.read_bytes())
        except OSError as error:
            raise GeometryError(f"{path}: cannot be read: {error.strerror}") from error

    def u32(self, name: str, n: int) -> NDArray[np.uint32]:
        """The next `n` unsigned 32-bit numbers."""
        return self._take(name, "<u4", n).astype(np.uint32)

    def u16(self, name: str, n: int) -> NDArray[np.uint16]:
        """The next `n` unsigned 16-bit numbers."""
        return self._take(name, "<u2", n).astype(np.uint16)

    def i32(self, name: str, n: int) -> NDArray[np.int32]:
        """The next `n` signed 32-bit numbers."""
        return self._take(name, "<i4", n).astype(np.int32)

    def f32(self, name: str, n: int, *, largest: float) -> NDArray[np.float32]:
        """The next `n` 32-bit floats: finite, and of magnitude `largest` at most."""
        values = self._take(name, "<f4", n).astype(np.float32)
        if not np.isfinite(values).all():
            raise self.error(f"{name} holds a value that is not finite")
        if n and np.abs(values).max() > largest:
            raise self.error(f"{name} holds {np.abs(values).max():g}, at most {largest:g} is possible")
        return values

    def expect_u32(self, name: str, expected: int) -> None:
        """The next unsigned 32-bit number must be `expected`."""
        self._expect(name, "<u4", expected)

    def expect_u64(self, name: str, expected: int) -> None:
        """The next unsigned 64-bit number must be `expected`."""
        self._expect(name, "<u8", expected)

    def end(self) -> None:
        """The file must be read completely."""
        if self._at != len(self._content):
            raise self.error(f"{len(self._content)} bytes, expected {self._at}")

    def error(self, what: str) -> GeometryError:
        """An error about this file."""
        return GeometryError(f"{self.path}: {what}")

    def _expect(self, name: str, dtype: str, expected: int) -> None:
        found = int(self._take(name, dtype, 1)[0])
        if found != expected:
            raise self.error(f"{name} is {found}, expected {expected}")

    def _take(self, name: str, dtype: str, n: int) -> NDArray[np.number]:
        size = n * np.dtype(dtype).itemsize
        if self._at + size > len(self._content):
            raise self.error(f"{len(self._content)} bytes end before {name} at {self._at}, {size} bytes long")
        values = np.frombuffer(self._content, dtype, n, self._at)
        self._at += size
        return values
