"""Model files in a line: the response for a candidate, whose fields are the features."""

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from hltnode.processing.selection.errors import LineError, ModelError
from hltnode.processing.selection.expressions.expression import Expression, as_node, number, output_of
from hltnode.processing.selection.expressions.functions import exp, where
from hltnode.processing.selection.expressions.nodes import Kind, Node
from hltnode.processing.selection.expressions.source_position import fail, made_of, source_folder
from hltnode.processing.selection.lines.inputs import Candidate
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.learned import UNNAMED
from hltnode.processing.selection.models.model_file import read_model
from hltnode.processing.selection.models.networks.network import Network
from hltnode.processing.selection.models.table import ModelTable

Feature = str | Callable[[Any], Any]
"""The name of a field, or a function of the candidate such as `lambda v: log(v.fd_chi2)`."""


class _LearnedModel:
    """The model of a file. path: relative to the Python file that names it."""

    _table: type[ModelTable]
    _other: str

    def __init__(self, path: str | Path, features: Sequence[Feature] | None = None) -> None:
        self._path = source_folder() / path
        self._learned = read_model(self._path)
        if not isinstance(self._learned.table, self._table):
            raise ModelError(f"{self._path}: {self._learned.table.kind}: {self._other} takes it")
        known = self._learned.features
        self.features: tuple[Feature, ...] = known if features is None else tuple(features)
        if len(self.features) != len(known):
            fail(f"{self._path.name}: {len(self.features)} features are given, the model has {len(known)}")
        if features is None and known[0].startswith(UNNAMED):
            fail(
                f"{self._path.name}: the file has no names of its {len(known)} features: "
                f"{type(self).__name__}({str(path)!r}, features=[...]) gives them, in the order of the training"
            )

    def __call__(self, candidate: Any) -> Expression:
        """The response: the probability of a classifier, or the predicted number.

        Raises LineError for a feature that is no field of the candidate.
        """
        response = self.raw(candidate)
        slope = self._learned.slope
        return response if slope is None else 1.0 / (1.0 + exp(-slope * response))

    def raw(self, candidate: Any) -> Expression:
        """The number before the logistic function. Raises LineError as `__call__` does."""
        if not isinstance(candidate, Candidate):
            fail(f"{self._path.name}: a model takes a candidate, not {candidate!r}")
        inputs = (self._input(candidate, i, feature) for i, feature in enumerate(self.features))
        return output_of(self._learned.table, tuple(inputs))

    def _input(self, candidate: Candidate, place: int, feature: Feature) -> Node:
        name = repr(feature) if isinstance(feature, str) else str(place)
        try:
            if isinstance(feature, str):
                value = reduce(getattr, feature.split("."), candidate)
            else:
                value = made_of(feature, candidate)
        except (AttributeError, LineError) as error:
            # The place in a line file that follows in brackets is that of the model, and comes once.
            text = str(error).rpartition(" (")[0] or str(error)
            fail(f"{self._path.name}: feature {name}: {text}")
        if not isinstance(value, Expression):
            what = "a candidate" if isinstance(value, Candidate) else repr(value)
            fail(f"{self._path.name}: feature {name} is {what}, expected a number of the candidate")
        if as_node(value).kind is Kind.BOOL:
            value = where(value, 1.0, 0.0)
        return number(value, "a model")


class TreeModel(_LearnedModel):
    """Decision trees of a file of XGBoost, CatBoost or LightGBM, or of ONNX (docs/formats/tree-models.md).

    path: relative to the Python file that names it. features: the fields of a candidate that the trees take, or
    functions of it, in the order of the training, instead of the names in the file.

    Raises ModelError for a file that cannot be read, and LineError for other than one field for each feature.
    """

    _table = Ensemble
    _other = "NetworkModel"


class NetworkModel(_LearnedModel):
    """A dense network of an ONNX file, or a monotone network in JSON (docs/formats/network-models.md).

    path, features: as for TreeModel. The response is NaN if a feature is, so that the line does not select.

    Raises ModelError for a file that cannot be read, and LineError for other than one field for each feature.
    """

    _table = Network
    _other = "TreeModel"
