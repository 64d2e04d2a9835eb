"""A dense network as one table of 32-bit words: for kernels (network.cuh), for NumPy and for TCK documents.

The words: 0x4E455457, number of features, number of steps, largest number of values between two steps. The steps
follow; each has a head, `kind | number of its results << 8`, and its parameters (f32 without another type):

    DENSE          for each result the bias, then a weight for each value
    ADD MUL DIV    a constant for each value; DIV divides by it
    LEAKY_RELU     the slope below 0
    GROUP_SORT     u32 size of the groups: each is sorted, the smallest value first
    RESIDUAL       a weight for each feature: their weighted sum is added to the one value
    RELU SIGMOID TANH      none

The last step has one result. A NaN among the features makes the response NaN.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import F32, U32
from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models.table import ModelTable, Words, expect, words_of_text

MAGIC = 0x4E455457
"""No number of trees is as large, so the first word tells the tables apart."""
MAX_FEATURES = 128
MAX_WIDTH = 128
"""Values of a layer: two such layers of 16 lanes take 16 KiB of a stack, and 1 KiB of each thread of a GPU."""
MAX_STEPS = 64
MAX_WORDS = 1 << 16
"""Some 65,000 multiplications for each candidate, in a table of 256 KiB."""
MAX_GROUP = 32

_HEADER = 4


class Kind(IntEnum):
    """Kind of a step."""

    DENSE = 0
    ADD = 1
    MUL = 2
    DIV = 3
    RELU = 4
    LEAKY_RELU = 5
    SIGMOID = 6
    TANH = 7
    GROUP_SORT = 8
    RESIDUAL = 9


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step on the values before it.

    weights: f32[results, values] of DENSE; f32[features] of RESIDUAL. constants: f32[results], the biases of DENSE;
    f32[1], the slope of LEAKY_RELU. group: of GROUP_SORT.
    """

    kind: Kind
    n_results: int
    weights: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, F32))
    constants: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, F32))
    group: int = 0

    @property
    def words(self) -> Words:
        """The words of the table."""
        if self.kind is Kind.DENSE:
            parameters = np.column_stack([self.constants, self.weights]).ravel()
        else:
            parameters = np.concatenate([self.constants, self.weights])
        head = [self.kind | self.n_results << 8, *([self.group] if self.kind is Kind.GROUP_SORT else [])]
        return np.concatenate([np.array(head, U32), parameters.astype(F32).view(U32)])


class Network(ModelTable):
    """A table of a network, checked. steps: what it says.

    Raises ModelError for a table that is not of this form.
    """

    prefix = "network"
    kind = "a network"

    def __init__(self, words: Words) -> None:
        super().__init__(words)
        self.steps = tuple(_checked(words))

    @classmethod
    def of_steps(cls, steps: Sequence[Step], n_features: int) -> "Network":
        """The table of some steps.

        Raises ModelError for more features, values, steps or words than allowed, and for parameters that are not
        finite.
        """
        # Before the words are made: a file may ask for any number of them.
        expect(len(steps), 1, MAX_STEPS, "steps")
        expect(sum(step.weights.size + step.constants.size for step in steps), 0, MAX_WORDS, "weights")
        widest = max(n_features, *(step.n_results for step in steps))
        expect(n_features, 1, MAX_FEATURES, "features")
        expect(widest, 1, MAX_WIDTH, "values of a layer")
        head = np.array([MAGIC, n_features, len(steps), widest], U32)
        return cls(np.concatenate([head, *(step.words for step in steps)]))

    @classmethod
    def from_text(cls, text: str) -> "Network":
        """The table of a text from `text`. Raises ModelError."""
        return cls(words_of_text(text, "a network"))

    @property
    def width(self) -> int:
        """The largest number of values between two steps."""
        return int(self.words[3])

    @property
    def cost(self) -> int:
        """A weight counts as one operation."""
        return len(self.words)


# --- checking a table -------------------------------------------------------------------------------------------------


def _checked(words: Words) -> Iterator[Step]:
    """The steps. Raises ModelError if a kernel could leave the table or its values."""
    if not _HEADER < len(words) <= MAX_WORDS + _HEADER:
        raise ModelError(f"a table of {len(words)} words, expected {_HEADER + 1} to {MAX_WORDS + _HEADER}")
    magic, n_features, n_steps, width = (int(word) for word in words[:_HEADER])
    if magic != MAGIC:
        raise ModelError(f"a table that begins with 0x{magic:08X}, expected 0x{MAGIC:08X}")
    expect(n_features, 1, MAX_FEATURES, "features")
    expect(n_steps, 1, MAX_STEPS, "steps")
    at, n, widest = _HEADER, n_features, n_features
    for number in range(n_steps):
        if at >= len(words):
            raise ModelError(f"the table ends before step {number}")
        try:
            step = _step(words[at:], n, n_features)
        except ModelError as error:
            raise ModelError(f"step {number}: {error}") from error
        at += len(step.words)
        n = step.n_results
        widest = max(widest, n)
        yield step
    if at != len(words):
        raise ModelError(f"{len(words)} words, the steps end at {at}")
    if n != 1:
        raise ModelError(f"{n} results: a model with one response is expected")
    if widest != width:
        raise ModelError(f"{widest} values between two steps, its head says {width}")


def _step(words: Words, n: int, n_features: int) -> Step:
    """The first step, on n values. Raises ModelError."""
    head = int(words[0])
    if head & 0xFF not in set(Kind):
        raise ModelError(f"unknown kind {head & 0xFF}")
    kind, n_results = Kind(head & 0xFF), head >> 8
    expect(n_results, 1, MAX_WIDTH, "values of a layer")
    if kind is not Kind.DENSE and n_results != n:
        raise ModelError(f"{kind.name} has {n_results} results for {n} values")
    group, begin = 0, 1
    if kind is Kind.GROUP_SORT:
        group, begin = int(words[1]) if len(words) > 1 else 0, 2
        if not 1 < group <= MAX_GROUP or n % group:
            raise ModelError(f"groups of {group} in {n} values, expected a divisor of them from 2 to {MAX_GROUP}")
    if kind is Kind.RESIDUAL and n != 1:
        raise ModelError(f"a sum of the features is added to {n} values, expected 1")
    size = {
        Kind.DENSE: n_results * (n + 1),
        **dict.fromkeys((Kind.ADD, Kind.MUL, Kind.DIV), n),
        Kind.LEAKY_RELU: 1,
        Kind.RESIDUAL: n_features,
    }.get(kind, 0)
    numbers = words[begin : begin + size].view(F32)
    if len(numbers) != size:
        raise ModelError("the table ends in its parameters")
    if not np.isfinite(numbers).all():
        raise ModelError(f"a parameter of {kind.name} is not a finite number")
    if kind is Kind.DIV and (numbers == 0).any():
        raise ModelError("a value is divided by 0")
    if kind is Kind.DENSE:
        table = numbers.reshape(n_results, n + 1)
        return Step(kind, n_results, table[:, 1:], table[:, 0])
    if kind is Kind.RESIDUAL:
        return Step(kind, n_results, numbers)
    return Step(kind, n_results, constants=numbers, group=group)
