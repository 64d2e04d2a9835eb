"""What a model file says: the table, the names of its features, and how the response follows from its result."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.table import ModelTable

UNNAMED = "feature "
"""The names of features that have none in the file begin with this."""


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """features: their names in the order of the numbers that the table takes. slope: the response is
    1 / (1 + exp(-slope * result)); None: it is the result."""

    table: ModelTable
    features: tuple[str, ...]
    slope: float | None = None

    @property
    def trees(self) -> Ensemble:
        """The table, if it has trees. Raises ModelError."""
        if not isinstance(self.table, Ensemble):
            raise ModelError(f"{self.table.kind}: decision trees are expected")
        return self.table


def finite(values: object, what: str, n: int | None = None) -> NDArray[np.float64]:
    """A list of finite numbers, `n` of them. Raises ModelError."""
    found = _list(values, what, n).astype(np.float64)
    if not np.isfinite(found).all():
        raise ModelError(f"{what}: {found[~np.isfinite(found)][0]} is not a finite number")
    return found


def integers(values: object, what: str, n: int | None = None) -> NDArray[np.int64]:
    """A list of integers, `n` of them. Raises ModelError."""
    found = finite(values, what, n)
    if (found != np.floor(found)).any() or (np.abs(found) > 2**31).any():
        raise ModelError(f"{what}: integers are expected")
    return found.astype(np.int64)


def _list(values: object, what: str, n: int | None) -> NDArray[np.float64]:
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{what}: a list of numbers is expected") from error
    if found.ndim != 1 or (n is not None and len(found) != n):
        raise ModelError(f"{what}: a list of {'' if n is None else f'{n} '}numbers is expected")
    return found


def names(values: object, n_features: int) -> tuple[str, ...]:
    """The names of features; `feature 0`, `feature 1`, ... if a file has none (`UNNAMED`). Raises ModelError."""
    if values is None or values == []:
        return tuple(f"{UNNAMED}{i}" for i in range(n_features))
    if not isinstance(values, Sequence) or isinstance(values, str) or not all(isinstance(name, str) for name in values):
        raise ModelError("the names of the features are not texts")
    if len(values) != n_features:
        raise ModelError(f"{len(values)} names of features for {n_features} features")
    if len(set(values)) != len(values):
        raise ModelError("two features have the same name")
    return tuple(values)


def feature_number(number: int, n_features: int) -> int:
    """The feature of a split. Raises ModelError if there is none."""
    if not 0 <= number < n_features:
        raise ModelError(f"a split uses feature {number}, the model has {n_features}")
    return number
