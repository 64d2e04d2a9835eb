"""Values of a configuration for constants of algorithms, instead of the declared ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.selection.configuration.numbers import finite_number
from hltnode.processing.selection.errors import TriggerConfigError


@dataclass(frozen=True, slots=True)
class Override:
    """A value for one constant of one algorithm."""

    algorithm: str
    constant: str
    value: float | int


def parse_sequence(tables: object) -> tuple[str | None, tuple[Override, ...]]:
    """The name of the sequence, and the constants of its algorithms. Raises TriggerConfigError."""
    if not isinstance(tables, Mapping):
        raise TriggerConfigError("sequence: a table of algorithms is expected")
    name = tables.get("name")
    if name is not None and not isinstance(name, str):
        raise TriggerConfigError(f"sequence.name: the name of a sequence is expected, not {name!r}")
    overrides = []
    for algorithm, constants in tables.items():
        if algorithm == "name":
            continue
        if not isinstance(constants, Mapping):
            raise TriggerConfigError(f"sequence.{algorithm}: a table of constants is expected")
        for constant, value in constants.items():
            overrides.append(override_of(algorithm, constant, value))
    return name, tuple(overrides)


def override_of(algorithm: str, constant: str, value: Any) -> Override:
    """A checked value for a constant. Raises TriggerConfigError."""
    return Override(algorithm, constant, finite_number(f"sequence.{algorithm}.{constant}", value))


def with_overrides(sequence: AlgorithmSequence, overrides: Iterable[Override]) -> AlgorithmSequence:
    """The sequence with the overridden constants.

    Raises TriggerConfigError for an unknown algorithm or constant, a value of the wrong type, and for a shared constant
    that two algorithms have with different values.
    """
    known = {algorithm.name: algorithm for algorithm in sequence}
    for override in overrides:
        if override.algorithm not in known:
            raise TriggerConfigError(
                f"sequence.{override.algorithm}: unknown algorithm; algorithms with constants are "
                f"{', '.join(algorithm.name for algorithm in sequence if algorithm.constants)}"
            )
        known[override.algorithm] = _with_constant(known[override.algorithm], override)
    _check_shared(known.values())
    return AlgorithmSequence(tuple(known[algorithm.name] for algorithm in sequence))


def _check_shared(algorithms: Iterable[Algorithm]) -> None:
    first: dict[str, tuple[str, float | int]] = {}
    for algorithm in algorithms:
        for constant in algorithm.constants:
            if not constant.shared:
                continue
            owner, value = first.setdefault(constant.name, (algorithm.name, constant.value))
            if constant.value != value:
                raise TriggerConfigError(
                    f"sequence.{algorithm.name}.{constant.name}: {constant.value!r}, but {owner} has {value!r}; both "
                    "need the same value"
                )


def _with_constant(algorithm: Algorithm, override: Override) -> Algorithm:
    key = f"sequence.{algorithm.name}.{override.constant}"
    declared = {constant.name: constant for constant in algorithm.constants}
    if override.constant not in declared:
        raise TriggerConfigError(f"{key}: unknown constant; there are {', '.join(declared) or 'none'}")
    value, constant = override.value, declared[override.constant]
    if isinstance(constant.value, float):
        value = float(value)
    elif not isinstance(value, int) or not 0 <= value < 2**32:
        raise TriggerConfigError(f"{key}: an integer from 0 to 2^32 - 1 is expected, not {value!r}")
    if constant.allowed is not None and value not in constant.allowed:
        first, last = constant.allowed[0], constant.allowed[-1]
        raise TriggerConfigError(f"{key}: a number from {first} to {last} is expected, not {value!r}")
    return algorithm.with_constants({override.constant: value})
