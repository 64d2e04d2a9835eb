"""JSON files of numbers with format, version and fields."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.errors import GeometryError

T = TypeVar("T")

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def read_json_file(
    path: Path, form: tuple[str, int], make: Callable[[Mapping[str, Any]], T], error: type[GeometryError]
) -> T:
    """Return `make(content)` for a file of this format and version.

    Raises `error`, which names the file, also if `make` raises an ArithmeticError, LookupError, TypeError or
    ValueError.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise error(f"{path}: is not JSON: {problem}") from problem
    if not isinstance(content, dict):
        raise error(f"{path}: is no JSON object")
    try:
        found = (content["format"], content["version"])
        if found != form:
            raise ValueError(f"is {found[0]!r} version {found[1]}, expected {form[0]!r} {form[1]}")
        return make(content)
    except KeyError as problem:
        raise error(f"{path}: has no {problem}") from problem
    except (ArithmeticError, LookupError, TypeError, ValueError) as problem:
        raise error(f"{path}: {problem}") from problem


def numbers(content: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """A field as an array. Raises ValueError if it is not of this shape, or not finite in single precision, in which
    kernels compute."""
    values = np.array(content[name], np.float64)
    if values.shape != shape or not (np.abs(values) <= LARGEST_FLOAT32).all():
        raise ValueError(f"{name} must be finite numbers of the shape {list(shape)}, of {LARGEST_FLOAT32:.3g} at most")
    return values
