"""Networks with one hidden layer: their form, their weights and the file of the weights."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Record
from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.json_file import numbers, read_json_file

SMALLEST_SPREAD = float(np.finfo(np.float32).tiny)
"""Kernels multiply by the inverse of a spread, in single precision."""

FloatArray = NDArray[np.float64]

_VERSION = 1


class NetworkError(GeometryError):
    """A file of weights is invalid; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkForm:
    """What a network takes, and where its weights are.

    `name` as in kernels; `title` is the format of the file `file`, and `folder` has the file of the built-in detector;
    `inputs`: their names, in the order of the weights; `n_hidden` hidden nodes; `error` is raised for invalid files.
    """

    name: str
    title: str
    file: str
    folder: Path
    inputs: tuple[str, ...]
    n_hidden: int
    error: type[NetworkError]

    @property
    def record(self) -> Record:
        """The weights for kernels."""
        n_inputs = len(self.inputs)
        fields = [
            ("mean", "<f4", (n_inputs,)),
            ("inverse_spread", "<f4", (n_inputs,)),
            ("hidden", "<f4", (n_inputs, self.n_hidden)),
            ("hidden_bias", "<f4", (self.n_hidden,)),
            ("output", "<f4", (self.n_hidden,)),
            ("output_bias", "<f4"),
        ]
        return Record(
            self.name,
            np.dtype(fields),
            {
                "mean": "of each input",
                "inverse_spread": "1 / standard deviation",
                "hidden": "weights of the inputs in each hidden node",
                "output": "weights of the hidden nodes",
            },
        )


@dataclass(frozen=True, slots=True, eq=False)
class OneHiddenLayer:
    """u = output . max(0, hidden^T (inputs - mean) / spread + hidden_bias) + output_bias; the response is
    (1 + u / sqrt(1 + u^2)) / 2, from 0 to 1.

    Arrays as in `form.record`; `provenance`: training data and performance.
    """

    form: ClassVar[NetworkForm]

    mean: FloatArray
    spread: FloatArray
    hidden: FloatArray
    hidden_bias: FloatArray
    output: FloatArray
    output_bias: float
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def builtin(cls) -> Self:
        """The network for the built-in detector."""
        return cls.load(cls.form.folder)

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read the file of weights of a directory. Raises `form.error`, which names the file."""
        return read_json_file(Path(directory) / cls.form.file, (cls.form.title, _VERSION), cls._of, cls.form.error)

    @classmethod
    def load_or_builtin(cls, directory: Path | None) -> Self:
        """The network of a folder of geometry files; that of the built-in detector if the folder has none."""
        if directory is None or not (directory / cls.form.file).exists():
            return cls.builtin()
        return cls.load(directory)

    @classmethod
    def _of(cls, content: Mapping[str, Any]) -> Self:
        n_inputs, n_hidden = len(cls.form.inputs), cls.form.n_hidden
        if tuple(content["inputs"]) != cls.form.inputs:
            raise ValueError(f"has the inputs {content['inputs']}, expected {list(cls.form.inputs)}")
        spread = numbers(content, "spread", (n_inputs,))
        if not (spread >= SMALLEST_SPREAD).all():
            raise ValueError(f"spread must be above 0, {SMALLEST_SPREAD:.3g} at least")
        return cls(
            mean=numbers(content, "mean", (n_inputs,)),
            spread=spread,
            hidden=numbers(content, "hidden", (n_inputs, n_hidden)),
            hidden_bias=numbers(content, "hidden_bias", (n_hidden,)),
            output=numbers(content, "output", (n_hidden,)),
            output_bias=float(numbers(content, "output_bias", ())),
            provenance=content["provenance"],
        )

    def as_json(self) -> str:
        """The content of the file; every number has six digits."""
        parts: list[tuple[str, Any]] = [("format", self.form.title), ("version", _VERSION)]
        parts += [("provenance", self.provenance), ("inputs", self.form.inputs)]
        for name in ("mean", "spread", "hidden", "hidden_bias", "output", "output_bias"):
            values = np.asarray(getattr(self, name), np.float64)
            rounded = np.array([float(f"{value:.5e}") for value in values.ravel()]).reshape(values.shape)
            parts.append((name, rounded.tolist()))
        return "{\n" + ",\n".join(f' "{name}": {json.dumps(value)}' for name, value in parts) + "\n}\n"

    def to_bytes(self) -> bytes:
        """The bytes for kernels."""
        record = np.zeros(1, self.form.record.dtype)
        record["inverse_spread"] = 1.0 / self.spread
        for name in ("mean", "hidden", "hidden_bias", "output", "output_bias"):
            record[name] = getattr(self, name)
        return record.tobytes()

    def response(self, inputs: FloatArray) -> FloatArray:
        """f64[n] of inputs f64[n, number of inputs]."""
        hidden = np.maximum((inputs - self.mean) / self.spread @ self.hidden + self.hidden_bias, 0.0)
        u = hidden @ self.output + self.output_bias
        response: FloatArray = 0.5 * (1.0 + u / np.sqrt(1.0 + u * u))
        return response


def logarithm_of_1_and(values: NDArray[Any]) -> FloatArray:
    """ln(1 + value), of values limited to 0 to 10,000; NaN counts as 0."""
    found: FloatArray = np.log1p(np.clip(np.nan_to_num(values.astype(np.float64)), 0.0, 1e4))
    return found
