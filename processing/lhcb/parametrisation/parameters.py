"""The parametrisation as a whole, and its file (docs/formats/long-track-parameters.md)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.json_file import numbers, read_json_file
from hltnode.processing.lhcb.parametrisation.filter_noise import Noise, Step
from hltnode.processing.lhcb.parametrisation.forms import (
    BEFORE_UT,
    BEHIND_MAGNET,
    IN_UT,
    SEED_CURVATURE,
    SEED_MOMENTUM,
    SEED_REACH,
    SHAPE,
    FloatArray,
    Form,
)
from hltnode.processing.lhcb.parametrisation.functions import BeforeUt, BehindMagnet, Functions, InUt, Seeds
from hltnode.processing.lhcb.parametrisation.scattering import ExpectedErrors, Quantity
from hltnode.processing.lhcb.parametrisation.seeding import PAIRS

PARAMETERS_FILE = "long_track_parameters.json"
FORMAT, VERSION = "hltnode long track parameters", 2

# Number of digits in the file; float32 has seven.
_DIGITS = 7
# Tolerance between two machines, relative to the largest coefficient of a function.
_TOLERANCE = 1e-4
_ENERGY_TOLERANCE = 0.01  # MeV

F = TypeVar("F", bound=Functions)

SEED_FORMS: Mapping[str, Form] = {"momentum": SEED_MOMENTUM} | {
    f"{kind}_{pair}": form for pair in PAIRS for kind, form in (("curvature", SEED_CURVATURE), ("reach", SEED_REACH))
}
SEED_SPREADS = tuple(f"reach_{pair}" for pair in PAIRS)


class ParametersError(GeometryError):
    """A file of parameters is invalid; the message names it."""


@dataclass(frozen=True, slots=True, eq=False)
class LongTrackParameters:
    """Parameters of magnet and material for the long tracking.

    `polarity` -1 (down) or +1; `energy_loss` (MeV) before the magnet, which measures the remaining momentum;
    `behind_velo` and `behind_ut`: from a straight line at Z_VELO or Z_UT to the SciFi;
    `before_ut` and `in_ut`: from the line at Z_VELO to and through the UT; `seeds`: functions of the SciFi alone, and
    `seed_spreads`: the variances of tracks about `reach` (seeding.py); `errors`: variances from scattering and
    resolution; `noise`: noise of the steps of the fit of long tracks; `provenance`: input of the computation;
    `accuracy`: agreement with simulated flights.
    """

    polarity: float
    energy_loss: float
    behind_velo: BehindMagnet
    behind_ut: BehindMagnet
    before_ut: BeforeUt
    in_ut: InUt
    seeds: Seeds
    seed_spreads: Mapping[str, FloatArray]
    errors: ExpectedErrors
    noise: Noise
    provenance: Mapping[str, Any] = field(default_factory=dict)
    accuracy: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def builtin(cls) -> Self:
        """The parameters of the built-in detector: written by `hltnode parametrise`, as a check ensures."""
        return cls.load(Path(__file__).parent)

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read long_track_parameters.json of a directory. Raises ParametersError, which names the file."""
        return read_json_file(Path(directory) / PARAMETERS_FILE, (FORMAT, VERSION), cls._of, ParametersError)

    @classmethod
    def _of(cls, content: Mapping[str, Any]) -> Self:
        polarity = float(content["polarity"])
        if abs(polarity) != 1.0:
            raise ValueError(f"polarity is {polarity:g}, expected 1 or -1")
        errors = {q: numbers(content["errors"], q.value, (3,)) for q in Quantity}
        return cls(
            polarity=polarity,
            energy_loss=float(numbers(content, "energy_loss", ())),
            behind_velo=_functions(BehindMagnet, content, BEHIND_MAGNET),
            behind_ut=_functions(BehindMagnet, content["behind_ut"], BEHIND_MAGNET),
            before_ut=_functions(BeforeUt, content["before_ut"], BEFORE_UT),
            in_ut=_functions(InUt, content["in_ut"], IN_UT),
            seeds=_functions(Seeds, content["seeds"], SEED_FORMS),
            seed_spreads={name: numbers(content["seed_spreads"], name, (2,)) for name in SEED_SPREADS},
            errors=ExpectedErrors(errors),
            noise={step: numbers(content["noise"], step.value, (3,)) for step in Step},
            provenance=content["provenance"],
            accuracy=content["accuracy"],
        )

    def as_json(self) -> str:
        """The content of the file; every coefficient has seven digits, every row is on one line."""
        parts: list[tuple[str, Any]] = [("format", FORMAT), ("version", VERSION), ("provenance", self.provenance)]
        parts += [("accuracy", self.accuracy), ("polarity", self.polarity)]
        parts.append(("energy_loss", round(self.energy_loss, 3)))
        parts += _rounded(self.behind_velo.coefficients).items()
        for name in ("behind_ut", "before_ut", "in_ut", "seeds"):
            parts.append((name, _rounded(getattr(self, name).coefficients)))
        parts.append(("seed_spreads", _rounded(self.seed_spreads)))
        parts.append(("errors", _rounded({q.value: values for q, values in self.errors.coefficients.items()})))
        parts.append(("noise", _rounded({step.value: values for step, values in self.noise.items()})))
        return "{\n" + ",\n".join(f' "{name}": {_indented(value)}' for name, value in parts) + "\n}\n"

    def differences(self, other: Self) -> list[str]:
        """Names of the values that differ from another parametrisation by more than rounding. Provenance and accuracy
        are not compared, except the digests."""
        found = [] if self.polarity == other.polarity else ["polarity"]
        if abs(self.energy_loss - other.energy_loss) > _ENERGY_TOLERANCE:
            found.append("energy_loss")
        mine, theirs = self._all_coefficients(), other._all_coefficients()
        for name, values in mine.items():
            if np.abs(values - theirs[name]).max() > _TOLERANCE * np.abs(values).max():
                found.append(name)
        digests = [key for key in self.provenance if key.endswith("digest")]
        return found + [key for key in digests if self.provenance[key] != other.provenance.get(key)]

    def _all_coefficients(self) -> dict[str, FloatArray]:
        parts: dict[str, Mapping[Any, FloatArray]]
        names = ("behind_velo", "behind_ut", "before_ut", "in_ut", "seeds")
        parts = {name: getattr(self, name).coefficients for name in names}
        parts |= {"errors": self.errors.coefficients, "seed_spreads": self.seed_spreads, "noise": self.noise}
        return {f"{part}.{name}": values for part, functions in parts.items() for name, values in functions.items()}


def _functions(kind: type[F], content: Mapping[str, Any], forms: Mapping[str, Form]) -> F:
    return kind(forms, {name: numbers(content, name, SHAPE) for name in forms})


def _rounded(coefficients: Mapping[str, FloatArray]) -> dict[str, Any]:
    def of(value: Any) -> Any:
        return [of(part) for part in value] if isinstance(value, list) else float(f"{value:.{_DIGITS - 1}e}")

    return {name: of(values.tolist()) for name, values in coefficients.items()}


def _indented(value: Any) -> str:
    """JSON with lists of numbers, and dictionaries of numbers, on one line."""
    if isinstance(value, dict) and any(isinstance(part, dict | list) for part in value.values()):
        inner = ",\n  ".join(f"{json.dumps(name)}: {_one_line(part)}" for name, part in value.items())
        return "{\n  " + inner + "\n }"
    return _one_line(value)


def _one_line(value: Any) -> str:
    return json.dumps(value, separators=(", ", ": "))
