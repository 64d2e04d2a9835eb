"""The table of a model: 32-bit words for kernels, for NumPy and for TCK documents, named by their digest."""

import base64
import hashlib
from functools import cache, cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import U32, Column, constant_column
from hltnode.processing.selection.errors import ModelError

Words = NDArray[np.uint32]


class ModelTable:
    """A table of one kind, which a subclass checks. Equal tables are equal.

    words: u32[n]; word 1 is the number of features.
    """

    __slots__ = ("__dict__", "words")

    prefix: ClassVar[str]
    """Of the name of the constant column."""
    kind: ClassVar[str]
    """For messages."""

    def __init__(self, words: Words) -> None:
        self.words = words

    @property
    def text(self) -> str:
        """The words, little-endian, in base 64."""
        return base64.b64encode(self.words.astype("<u4").tobytes()).decode()

    @cached_property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of the words, little-endian."""
        return hashlib.sha256(self.words.astype("<u4").tobytes()).hexdigest()[:16]

    @property
    def n_features(self) -> int:
        """Number of numbers that the model takes."""
        return int(self.words[1])

    @property
    def cost(self) -> int:
        """The operations of lines that take as long, roughly."""
        raise NotImplementedError

    @property
    def column(self) -> Column:
        """The constant column with the words."""
        return _column(f"{self.prefix}_{self.digest}", len(self.words))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelTable) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@cache
def _column(name: str, n_words: int) -> Column:
    """One object for each table: a kernel declares its column once."""
    return constant_column(name, U32, lambda _: n_words)


def words_of_text(text: str, what: str) -> Words:
    """The words of a text from `ModelTable.text`. Raises ModelError."""
    try:
        content = base64.b64decode(text, validate=True)
        return np.frombuffer(content, "<u4").astype(U32)
    except (TypeError, ValueError) as error:
        raise ModelError(f"not a table of {what}: {error}") from error


def expect(value: int, least: int, most: int, what: str) -> None:
    """Raises ModelError for a number outside of its bounds."""
    if not least <= value <= most:
        raise ModelError(f"{value} {what}, expected {least} to {most}")


def bits(value: float, what: str) -> int:
    """A number in single precision as a word. Raises ModelError if it is not finite there."""
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
    if not np.isfinite(rounded):
        raise ModelError(f"{what} is {value:g}, expected a finite number in single precision")
    return int(rounded.view(U32))
