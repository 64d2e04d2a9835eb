"""The trigger configuration: which sequence and which lines run, with which cuts, and the constants that are not
default.

It is immutable. Its content, together with the constants of the sequence that it configures, is hashed to the TCK that
stands in every decision and report. As a file it is TOML:

    [sequence]
    name = "forward"

    [sequence.fit_vertices]
    max_chi2 = 9.0

    [[lines]]
    type = "MinimumTracks"
    name = "Hlt1TwoTracks"
    min_tracks = 2
    postscale = 0.001

Which sequences, types of lines and constants there are is up to the chain that the configuration is for.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.selection.line import LINE_RECORD, Line
from hltnode.protocol.raw_data.reports import MAX_LINES

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


class TriggerConfigError(ValueError):
    """A trigger configuration that cannot be used; the message names the key."""


@dataclass(frozen=True, slots=True)
class Menu:
    """The line types that configurations of a chain may name, by class name, and the lines of one that names none."""

    types: tuple[type[Line], ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Override:
    """A value for one constant of one algorithm."""

    algorithm: str
    constant: str
    value: float | int


@dataclass(frozen=True, slots=True)
class TriggerConfig:
    """Selection lines in the order of their bits, and constants of the sequence that replace the declared ones.

    sequence: the name of the sequence, None: the default one of the chain.

    Raises TriggerConfigError where there is no line, where there are more than the decision report of an event holds,
    or two of one name.
    """

    lines: tuple[Line, ...]
    overrides: tuple[Override, ...] = ()
    sequence: str | None = None

    def __post_init__(self) -> None:
        if len(self.lines) > MAX_LINES:
            raise TriggerConfigError(
                f"lines: {len(self.lines)} lines, at most {MAX_LINES} fit in the decision report of an event"
            )
        if not self.lines:
            raise TriggerConfigError("lines: at least one line is expected; without lines no event is accepted")
        places: dict[str, int] = {}
        for i, name in enumerate(self.line_names):
            if (first := places.setdefault(name, i)) != i:
                raise TriggerConfigError(f"lines[{i}].name: {name!r} is the name of lines[{first}] too")

    @classmethod
    def default(cls, menu: Menu) -> Self:
        """The lines of a menu, and the declared constants."""
        return cls(lines=menu.lines)

    @classmethod
    def load(cls, path: Path, menu: Menu) -> Self:
        """Read a TOML file. Raises TriggerConfigError, which names the file and the key."""
        try:
            return cls.from_toml(path.read_text(encoding="utf-8"), menu)
        except (OSError, UnicodeDecodeError) as error:
            raise TriggerConfigError(f"{path}: cannot be read: {error}") from error
        except TriggerConfigError as error:
            raise TriggerConfigError(f"{path}: {error}") from error

    @classmethod
    def from_content(cls, content: Mapping[str, Any], sequence: AlgorithmSequence, name: str, menu: Menu) -> Self:
        """The configuration with a content, for the sequence of that name. Raises TriggerConfigError, also where this
        software has other algorithms, constants or types of lines."""
        declared = {(algorithm.name, c.name): c.value for algorithm in sequence for c in algorithm.constants}
        overrides = []
        for algorithm, constants in content["sequence"]:
            for constant, value in constants.items():
                if (algorithm, constant) not in declared or declared[algorithm, constant] != value:
                    overrides.append(_override(algorithm, constant, value))
        types = {line_type.__name__: line_type for line_type in menu.types}
        lines = tuple(_parse_line(i, entry, types) for i, entry in enumerate(content["lines"]))
        config = cls(lines=lines, overrides=tuple(overrides), sequence=name)
        if (found := config.tck(sequence)) != (expected := content_key(content)):
            raise TriggerConfigError(
                f"TCK 0x{expected:08X} cannot be reproduced: with the algorithms and lines of this software the same "
                f"values give 0x{found:08X}"
            )
        return config

    @classmethod
    def from_toml(cls, text: str, menu: Menu) -> Self:
        """Parse the text of a TOML file. A file without lines keeps those of the menu. Raises TriggerConfigError."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise TriggerConfigError(f"not a TOML file: {error}") from error
        for key in content:
            if key not in ("lines", "sequence"):
                raise TriggerConfigError(f"{key}: unknown key; there are lines and sequence")
        sequence, overrides = _parse_sequence(content.get("sequence", {}))
        if "lines" not in content:
            return cls(lines=menu.lines, overrides=overrides, sequence=sequence)
        entries = content["lines"]
        if not isinstance(entries, list):
            raise TriggerConfigError("lines: an array of tables ([[lines]]) is expected")
        types = {line_type.__name__: line_type for line_type in menu.types}
        lines = tuple(_parse_line(i, entry, types) for i, entry in enumerate(entries))
        return cls(lines=lines, overrides=overrides, sequence=sequence)

    @property
    def line_names(self) -> tuple[str, ...]:
        """Name i belongs to bit i % 32 of decision word i // 32."""
        return tuple(line.name for line in self.lines)

    def line_table(self) -> NDArray[np.void]:
        """The content of the constant buffer `line_table`: LINE_RECORD[lines]."""
        return np.array([line.record() for line in self.lines], dtype=LINE_RECORD.dtype)

    def configure(self, sequence: AlgorithmSequence) -> AlgorithmSequence:
        """The sequence with the overridden constants.

        Raises TriggerConfigError for an algorithm or constant that is not there, or a value of the wrong type.
        """
        known = {algorithm.name: algorithm for algorithm in sequence}
        for override in self.overrides:
            if override.algorithm not in known:
                raise TriggerConfigError(
                    f"sequence.{override.algorithm}: no such algorithm; those with constants are "
                    f"{', '.join(algorithm.name for algorithm in sequence if algorithm.constants)}"
                )
            known[override.algorithm] = _with_constant(known[override.algorithm], override)
        return AlgorithmSequence(tuple(known[algorithm.name] for algorithm in sequence))

    def content(self, sequence: AlgorithmSequence) -> dict[str, Any]:
        """Everything that decides on an event, as JSON objects: lines with their cuts and scales, and the algorithms
        of the sequence with all their constants, whether they are defaults of the code or values of the file."""
        return {
            "lines": [{"type": type(line).__name__, **asdict(line)} for line in self.lines],
            "sequence": [
                [algorithm.name, {c.name: c.value for c in algorithm.constants}]
                for algorithm in self.configure(sequence)
            ],
        }

    def tck(self, sequence: AlgorithmSequence) -> int:
        """The configuration's key, the same on every machine (`content_key`)."""
        return content_key(self.content(sequence))


def content_hash(content: Mapping[str, Any]) -> bytes:
    """SHA-256 of the canonical JSON text of what decides on an event."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).digest()


def content_key(content: Mapping[str, Any]) -> int:
    """The first 32 bits of the hash."""
    return int.from_bytes(content_hash(content)[:4], "big")


def _parse_sequence(tables: object) -> tuple[str | None, tuple[Override, ...]]:
    """The name of the sequence, and the constants of its algorithms."""
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
            overrides.append(_override(algorithm, constant, value))
    return name, tuple(overrides)


def _override(algorithm: str, constant: str, value: Any) -> Override:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and abs(value) <= LARGEST_FLOAT32):
        raise TriggerConfigError(f"sequence.{algorithm}.{constant}: a finite number is expected, not {value!r}")
    return Override(algorithm, constant, value)


def _parse_line(index: int, entry: object, types: Mapping[str, type[Line]]) -> Line:
    where = f"lines[{index}]"
    if not isinstance(entry, Mapping):
        raise TriggerConfigError(f"{where}: a table is expected")
    fields: dict[str, Any] = dict(entry)
    type_name = fields.pop("type", None)
    if not isinstance(type_name, str) or type_name not in types:
        raise TriggerConfigError(f"{where}.type: {type_name!r} is none of {', '.join(sorted(types))}")
    try:
        return types[type_name](**fields)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise TriggerConfigError(f"{where}.{key}: {first['msg']}, not {first['input']!r}") from error


def _with_constant(algorithm: Algorithm, override: Override) -> Algorithm:
    key = f"sequence.{algorithm.name}.{override.constant}"
    declared = {constant.name: constant.value for constant in algorithm.constants}
    if override.constant not in declared:
        raise TriggerConfigError(f"{key}: no such constant; there are {', '.join(declared) or 'none'}")
    value = override.value
    if isinstance(declared[override.constant], float):
        value = float(value)
    elif not isinstance(value, int) or not 0 <= value < 2**32:
        raise TriggerConfigError(f"{key}: an integer from 0 to 2^32 - 1 is expected, not {value!r}")
    return algorithm.with_constants({override.constant: value})
