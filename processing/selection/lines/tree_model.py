"""A model file in a line: its response for a candidate, whose fields are the features."""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from hltnode.processing.selection.errors import LineError
from hltnode.processing.selection.expressions.expression import (
    Expression,
    Kind,
    Node,
    Op,
    as_node,
    fail,
    node,
    number,
    source_folder,
)
from hltnode.processing.selection.expressions.functions import exp, where
from hltnode.processing.selection.lines.inputs import Candidate
from hltnode.processing.selection.models.model_file import read_model


class TreeModel:
    """Decision trees of a file of XGBoost, CatBoost or LightGBM (docs/formats/tree-models.md).

    path: relative to the Python file that names it. features: the fields of a candidate that the trees take, in the
    order of the training, instead of the names in the file.

    Raises ModelError for a file that cannot be read, and LineError for other than one field for each feature.
    """

    def __init__(self, path: str | Path, features: Sequence[str] | None = None) -> None:
        self._path = source_folder() / path
        self._learned = read_model(self._path)
        known = self._learned.features
        self.features = known if features is None else tuple(features)
        if len(self.features) != len(known):
            fail(f"{self._path.name}: {len(self.features)} features are given, the model has {len(known)}")

    def __call__(self, candidate: Any) -> Expression:
        """The response: the probability of a classifier, or the predicted number.

        Raises LineError for a feature that is no field of the candidate.
        """
        response = self.raw(candidate)
        slope = self._learned.slope
        return response if slope is None else 1.0 / (1.0 + exp(-slope * response))

    def raw(self, candidate: Any) -> Expression:
        """The sum of the trees. Raises LineError as `__call__` does."""
        if not isinstance(candidate, Candidate):
            fail(f"{self._path.name}: a model takes a candidate, not {candidate!r}")
        inputs = tuple(self._input(candidate, feature) for feature in self.features)
        return Expression(node(Op.TREES, inputs, kind=Kind.FLOAT, payload=self._learned.trees))

    def _input(self, candidate: Candidate, feature: str) -> Node:
        try:
            value = reduce(getattr, feature.split("."), candidate)
        except (AttributeError, LineError) as error:
            # The place in a line file that follows in brackets is that of the model, and comes once.
            text = str(error).rpartition(" (")[0] or str(error)
            fail(f"{self._path.name}: feature {feature!r}: {text}")
        if not isinstance(value, Expression):
            fail(f"{self._path.name}: feature {feature!r} is no number, but a candidate")
        if as_node(value).kind is Kind.BOOL:
            value = where(value, 1.0, 0.0)
        return number(value, "a model")
