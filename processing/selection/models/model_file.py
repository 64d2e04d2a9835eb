"""A model file: decision trees or a network, with the names of the features."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models import catboost_file, lightgbm_file, xgboost_file
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.learned import LearnedModel
from hltnode.processing.selection.models.networks import monotone_file, onnx_file
from hltnode.processing.selection.models.networks.network import MAGIC, Network
from hltnode.processing.selection.models.table import ModelTable, words_of_text

MAX_BYTES = 256 << 20
"""A file with the most words of a table has some 50 MB as JSON."""

_ONNX = b"\x08"
"""The field of an ONNX file that comes first: the version of the format. No text begins with it."""
_BY_KEY: Mapping[str, Callable[[Mapping[str, Any]], LearnedModel]] = {
    "learner": xgboost_file.from_json,
    "features_info": catboost_file.from_json,
    "tree_info": lightgbm_file.from_json,
    "monotone_inputs": monotone_file.from_json,
}


def read_model(path: Path) -> LearnedModel:
    """The model of a file: trees that XGBoost or CatBoost wrote as JSON, or LightGBM as text or JSON; trees or a
    network in ONNX, or a monotone network in JSON.

    Raises ModelError, which names the file and the fault.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ModelError(f"{path}: {size} bytes, at most {MAX_BYTES} are read")
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        return model_of(content)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


def model_of(content: bytes) -> LearnedModel:
    """The model of the content of a file. Raises ModelError."""
    if content[:1] == _ONNX:
        return _read(onnx_file.from_bytes, content)
    try:
        if content.startswith(b"tree\n"):
            return lightgbm_file.from_text(content.decode())
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            "not a model file, JSON of XGBoost or CatBoost, text or JSON of LightGBM, ONNX, or JSON of a monotone "
            f"network: {error}"
        ) from error
    if not isinstance(values, dict):
        raise ModelError("not a model file: a JSON object is expected")
    for key, read in _BY_KEY.items():
        if key in values:
            return _read(read, values)
    raise ModelError(f"not a model file: it has none of the keys {', '.join(_BY_KEY)}")


def _read(read: Callable[[Any], LearnedModel], values: Any) -> LearnedModel:
    try:
        return read(values)
    except ModelError:
        raise
    except KeyError as error:
        raise ModelError(f"damaged, or of another version of its library: it has no {error}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"damaged, or of another version of its library: {error}") from error


def table_of_text(text: str) -> ModelTable:
    """The table of a TCK document, of trees or of a network. Raises ModelError."""
    words = words_of_text(text, "a model")
    return Network(words) if len(words) and int(words[0]) == MAGIC else Ensemble(words)
