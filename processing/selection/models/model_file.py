"""A model file: the trees of one of three libraries, with the names of their features."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models import catboost_file, lightgbm_file, xgboost_file
from hltnode.processing.selection.models.learned import LearnedTrees

MAX_BYTES = 256 << 20
"""A file with the most words of a table has some 50 MB as JSON."""

_BY_KEY: Mapping[str, Callable[[Mapping[str, Any]], LearnedTrees]] = {
    "learner": xgboost_file.from_json,
    "features_info": catboost_file.from_json,
    "tree_info": lightgbm_file.from_json,
}


def read_model(path: Path) -> LearnedTrees:
    """The trees of a file, which XGBoost or CatBoost wrote as JSON, or LightGBM as text or JSON.

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


def model_of(content: bytes) -> LearnedTrees:
    """The trees of the content of a file. Raises ModelError."""
    try:
        if content.startswith(b"tree\n"):
            return lightgbm_file.from_text(content.decode())
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"not a model file, JSON of XGBoost or CatBoost, or text or JSON of LightGBM: {error}"
        ) from error
    if not isinstance(values, dict):
        raise ModelError("not a model file: a JSON object is expected")
    for key, read in _BY_KEY.items():
        if key in values:
            return _read(read, values)
    raise ModelError(f"not a model file: it has none of the keys {', '.join(_BY_KEY)}")


def _read(read: Callable[[Mapping[str, Any]], LearnedTrees], values: Mapping[str, Any]) -> LearnedTrees:
    try:
        return read(values)
    except ModelError:
        raise
    except KeyError as error:
        raise ModelError(f"damaged, or of another version of its library: it has no {error}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"damaged, or of another version of its library: {error}") from error
