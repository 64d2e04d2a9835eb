"""The trigger configuration: sequence, lines with their cuts, conditions, and constants that differ from the defaults.

It is immutable. Its content and all constants of its sequence are hashed to the TCK, which every decision and report
contains. As a file it is TOML:

    line_files = ["my_lines.py"]            # lines written in Python, besides those below

    [sequence]
    name = "forward"

    [sequence.secondary_vertices_fit_vertices]
    max_chi2 = 9.0

    [conditions]                            # instead of numbers of the geometry
    beam_x = 0.85

    [models]                                # files of decision trees, for fields of lines in Python
    quality = "trees.json"                  # the name of a field that the chain offers

    [menu]
    name = "pp"                             # the default one; the chain may have others

    [menu.Hlt1TrackMVA]                     # cuts, scales and prefilters of a line of the menu
    alpha = -160.0
    prefilters = ["both_beams"]

    [[lines]]                               # instead of the menu
    type = "MinimumTracks"
    name = "Hlt1TwoTracks"
    min_tracks = 2
    postscale = 0.001

The chain defines the available sequences, line types, conditions and constants.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.near_names import SIMILARITY_OF_SHORT_NAMES, near_names, nearest
from hltnode.processing.selection.configuration.conditions import Values, parse_conditions
from hltnode.processing.selection.configuration.menu import Menu
from hltnode.processing.selection.configuration.overrides import (
    Override,
    override_of,
    parse_sequence,
    with_overrides,
)
from hltnode.processing.selection.configuration.toml_tables import (
    changed_menu,
    declared_by_users,
    made_line,
    parse_lines,
    parse_menu,
    parse_models,
    validated_line,
)
from hltnode.processing.selection.errors import ModelError, TriggerConfigError, shown
from hltnode.processing.selection.expressions.canonical import Reader, canonical
from hltnode.processing.selection.expressions.expression import Expression
from hltnode.processing.selection.expressions.nodes import models_of
from hltnode.processing.selection.lines.composite import Combination, combination_of_content, combinations_of
from hltnode.processing.selection.lines.histogram import RecordedHistogram
from hltnode.processing.selection.lines.inputs import Input, models_of_fields
from hltnode.processing.selection.lines.line import LINE_RECORD, Line, line_of_content
from hltnode.processing.selection.lines.line_type import LineType
from hltnode.processing.selection.lines.prefilter import Prefilter, named
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.model_file import table_of_text
from hltnode.processing.selection.models.table import ModelTable
from hltnode.protocol.raw_data.reports import MAX_LINES

_KEYS = ("lines", "menu", "sequence", "conditions", "models", "line_files", "line_packages")


@dataclass(frozen=True, slots=True)
class TriggerConfig:
    """Selection lines in the order of their bits, and constants of the sequence that replace the declared ones.

    sequence: name of the sequence; None: the default of the chain. from_menu: number of lines from the built-in menu,
    perhaps with other cuts. types: the line types of lines with cuts; lines of Python files and TCK documents have
    none. histograms: histograms besides those of the lines. conditions: numbers that replace those of the geometry.

    Raises TriggerConfigError for no line, for more lines than the decision report of an event holds, and for two lines
    of one name.
    """

    lines: tuple[Line, ...]
    overrides: tuple[Override, ...] = ()
    sequence: str | None = None
    from_menu: int = field(default=0, compare=False)
    types: tuple[LineType, ...] = field(default=(), compare=False, repr=False)
    histograms: tuple[RecordedHistogram, ...] = ()
    conditions: Values = ()
    menu: str | None = field(default=None, compare=False)
    """Name of the chosen menu; None: the default."""
    field_models: Mapping[str, Ensemble] = field(default_factory=dict, compare=False, repr=False)
    """The configured trees of fields, for lines that are recorded again with other cuts."""

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
                if i < len(self.types):
                    raise TriggerConfigError(f"lines[{i}].name: lines[{first}] has the name {name!r} too")
                places_of = " and ".join(self.lines[j].position for j in (first, i))
                raise TriggerConfigError(f"two lines have the name {name!r}, made at {places_of}")
        named(self.prefilters)
        combinations_of(column for line in self.lines for column in line.columns)

    @classmethod
    def default(cls, menu: Menu, sequence: str | None = None) -> Self:
        """The menu lines of a sequence, with the declared constants."""
        types = menu.of(sequence)
        lines = tuple(line.prefiltered_line(menu.prefilters_by_name) for line in types)
        return cls(lines=lines, sequence=sequence, from_menu=len(lines), types=types)

    @classmethod
    def load(cls, path: Path, menu: Menu, sequence: str | None = None) -> Self:
        """Read a TOML file. Raises TriggerConfigError, which names the file and the key."""
        try:
            return cls.from_toml(path.read_text(encoding="utf-8"), menu, sequence, path.parent)
        except OSError as error:
            raise TriggerConfigError(f"{path}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise TriggerConfigError(f"{path}: cannot be read: {error}") from error
        except TriggerConfigError as error:
            raise TriggerConfigError(f"{path}: {error}") from error

    @classmethod
    def from_content(
        cls, content: Mapping[str, Any], sequence: AlgorithmSequence, name: str | None, reader: Reader
    ) -> Self:
        """The configuration of a TCK content, for the named sequence, whose columns `reader` knows, with its models.

        Raises TriggerConfigError, also if this software has other algorithms, constants or operations of lines.
        """
        declared = {(algorithm.name, c.name): c.value for algorithm in sequence for c in algorithm.constants}
        overrides = []
        for algorithm, constants in content["sequence"]:
            for constant, value in constants.items():
                if (algorithm, constant) not in declared or declared[algorithm, constant] != value:
                    overrides.append(override_of(algorithm, constant, value))
        prefilters = {}
        reader = reader.with_models(_models(content))
        for i, entry in enumerate(content.get("composites", ())):
            try:
                reader = reader.with_columns(combination_of_content(entry, reader).writes)
            except TriggerConfigError as error:
                raise TriggerConfigError(f"composites[{i}]: {error}") from error
        for prefilter_name, operations in content.get("prefilters", {}).items():
            passes = Expression(reader.condition(operations, None))
            prefilters[prefilter_name] = Prefilter(prefilter_name, Input("events", "", {}), partial(_constant, passes))
        lines = []
        for i, entry in enumerate(content["lines"]):
            try:
                lines.append(line_of_content(entry, reader, prefilters))
            except TriggerConfigError as error:
                raise TriggerConfigError(f"lines[{i}]: {error}") from error
        conditions = parse_conditions(content.get("conditions", {}))
        config = cls(lines=tuple(lines), overrides=tuple(overrides), sequence=name, conditions=conditions)
        if (found := config.tck(sequence)) != (expected := content_key(content)):
            raise TriggerConfigError(
                f"TCK 0x{expected:08X} cannot be reproduced: with the algorithms and lines of this software the same "
                f"values give 0x{found:08X}"
            )
        return config

    @classmethod
    def from_toml(cls, text: str, menu: Menu, sequence: str | None = None, folder: Path = Path()) -> Self:
        """Parse the text of a TOML file. A file without `[[lines]]` keeps the lines of the menu.

        sequence: name of the sequence to run instead of the configured one. folder: base folder of relative line file
        names.

        Raises TriggerConfigError.
        """
        try:
            content = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise TriggerConfigError(f"not a TOML file: {error}") from error
        for key in content:
            if key not in _KEYS:
                raise TriggerConfigError(f"{key}: unknown key; there are {', '.join(_KEYS)}")
        configured, overrides = parse_sequence(content.get("sequence", {}))
        conditions = parse_conditions(content.get("conditions", {}))
        sequence = configured if sequence is None else sequence
        if "lines" in content and "menu" in content:
            raise TriggerConfigError("menu: [[lines]] replace the menu, so it cannot be changed")
        name = None
        if "lines" in content:
            types = parse_lines(content["lines"], {line_type.__name__: line_type for line_type in menu.types})
        else:
            name, changes = parse_menu(content.get("menu", {}))
            types = changed_menu(menu.of(sequence, name), changes)
        field_models = parse_models(content.get("models", {}), menu, folder)
        with models_of_fields(field_models):
            of_users = list(declared_by_users(content, folder))
        known = menu.prefilters_by_name
        where = "menu.{}" if "lines" not in content else "line {}"
        lines = (
            *(made_line(one, known, where) for one in types),
            *(line for declared in of_users for line in declared.lines),
        )
        histograms = tuple(histogram.recorded() for declared in of_users for histogram in declared.histograms)
        from_menu = 0 if "lines" in content else len(types)
        return cls(lines, overrides, sequence, from_menu, types, histograms, conditions, name, field_models)

    def with_cut(self, name: str, cut: str, value: float) -> Line:
        """The named line with another value of a cut or scale; lines written in Python have parameters as cuts.

        Raises TriggerConfigError for an unknown line or cut, and for an invalid value of the cut.
        """
        return self.with_cuts(name, {cut: value})

    def with_cuts(self, name: str, cuts: Mapping[str, float]) -> Line:
        """The named line with other values of some cuts. Raises TriggerConfigError as `with_cut` does."""
        if name not in self.line_names:
            raise TriggerConfigError(f"{name}: no line has this name; {nearest(name, self.line_names)}")
        line = self.lines[self.line_names.index(name)]
        if name not in {each.name for each in self.types}:
            with models_of_fields(self.field_models):
                for cut, value in cuts.items():
                    line = line.with_value(cut, value)
            return line
        return self._type_with(name, cuts).prefiltered_line(named(line.prefilters))

    def allows(self, name: str, cut: str, value: float) -> bool:
        """Whether a line of `types` may have a value of a cut."""
        try:
            self._type_with(name, {cut: value})
        except TriggerConfigError:
            return False
        return True

    def _type_with(self, name: str, cuts: Mapping[str, float]) -> LineType:
        line = {line.name: line for line in self.types}[name]
        values = {field.name: getattr(line, field.name) for field in fields(line)}
        known = line.cuts()
        for cut, value in cuts.items():
            if cut not in known:
                near = near_names(cut, known, similarity=SIMILARITY_OF_SHORT_NAMES)
                raise TriggerConfigError(
                    f"{name}.{cut}: the line has no such cut; the nearest are {', '.join(near or known)}"
                )
            is_count = isinstance(values[cut], int) and float(value).is_integer()
            values[cut] = int(value) if is_count else value
        return validated_line(name, type(line), values)

    def unit_of(self, name: str, cut: str) -> str:
        """Unit of the values of a cut of a line, empty if there is none or it is not known."""
        for line_type in self.types:
            if line_type.name == name:
                return line_type.unit_of(cut)
        return self.lines[self.line_names.index(name)].unit_of(cut)

    @property
    def line_names(self) -> tuple[str, ...]:
        """Name i belongs to bit i % 32 of decision word i // 32."""
        return tuple(line.name for line in self.lines)

    @property
    def prefilters(self) -> tuple[Prefilter, ...]:
        """The distinct prefilters of the lines."""
        return tuple(dict.fromkeys(prefilter for line in self.lines for prefilter in line.prefilters))

    @property
    def models(self) -> tuple[ModelTable, ...]:
        """The models of the lines, prefilters and composites."""
        of_composites = (root for composite in self.composites for root in composite.roots)
        return models_of((*(line.condition for line in self.lines), *of_composites))

    @property
    def composites(self) -> tuple[Combination, ...]:
        """The composites of the lines and prefilters, parts before their wholes. Raises LineError for equal names."""
        return combinations_of(column for line in self.lines for column in line.columns)

    def line_table(self) -> NDArray[np.void]:
        """The content of the constant buffer `line_table`: LINE_RECORD[lines]."""
        return np.array([line.record() for line in self.lines], dtype=LINE_RECORD.dtype)

    def configure(self, sequence: AlgorithmSequence) -> AlgorithmSequence:
        """The sequence with the overridden constants.

        Raises TriggerConfigError for an unknown algorithm or constant, a value of the wrong type, and for a shared
        constant that two algorithms have with different values.
        """
        return with_overrides(sequence, self.overrides)

    def content(self, sequence: AlgorithmSequence) -> dict[str, Any]:
        """All values that decide on an event, as JSON objects: lines with their operations and scales, the algorithms
        of the sequence with all their constants, defaults included unless they were added later, and the conditions
        if there are any."""
        content: dict[str, Any] = {
            "lines": [line.content() for line in self.lines],
            "sequence": [
                [
                    algorithm.name,
                    {c.name: c.value for c in algorithm.constants if c.added is None or c.value != c.added},
                ]
                for algorithm in self.configure(sequence)
            ],
        }
        if composites := self.composites:
            content["composites"] = [composite.content() for composite in composites]
        if self.prefilters:
            content["prefilters"] = {each.name: canonical(each.condition) for each in self.prefilters}
        if models := self.models:
            content["models"] = {trees.digest: trees.text for trees in models}
        if self.conditions:
            # Without conditions, models, prefilters and composites the key stays that of earlier versions.
            content["conditions"] = {
                name: list(value) if isinstance(value, tuple) else value for name, value in self.conditions
            }
        return content

    def tck(self, sequence: AlgorithmSequence) -> int:
        """The key of the configuration, the same on every machine (`content_key`)."""
        return content_key(self.content(sequence))


def _models(content: Mapping[str, Any]) -> list[ModelTable]:
    """The models of a TCK content. Raises ModelError."""
    found: list[ModelTable] = []
    for digest, text in content.get("models", {}).items():
        try:
            found.append(table_of_text(text))
            if found[-1].digest != digest:
                raise ModelError(f"its digest is {found[-1].digest}")
        except ModelError as error:
            raise ModelError(f"models.{shown(digest)}: {error}") from error
    return found


def content_hash(content: Mapping[str, Any]) -> bytes:
    """SHA-256 of the canonical JSON text of all values that decide on an event."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).digest()


def content_key(content: Mapping[str, Any]) -> int:
    """The first 32 bits of the hash."""
    return int.from_bytes(content_hash(content)[:4], "big")


def _constant(expression: Expression, _: object) -> Expression:
    return expression
