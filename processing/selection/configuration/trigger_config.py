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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.near_names import SIMILARITY_OF_SHORT_NAMES, near_names, nearest
from hltnode.processing.selection.configuration.conditions import Values, parse_conditions
from hltnode.processing.selection.configuration.line_files import Declared, read_file, read_package
from hltnode.processing.selection.configuration.numbers import finite_number
from hltnode.processing.selection.errors import LineError, ModelError, TriggerConfigError, shown
from hltnode.processing.selection.expressions.canonical import Reader, canonical
from hltnode.processing.selection.expressions.expression import Expression, models_of
from hltnode.processing.selection.lines.composite import Combination, combination_of_content, combinations_of
from hltnode.processing.selection.lines.histogram import RecordedHistogram
from hltnode.processing.selection.lines.inputs import Input, models_of_fields
from hltnode.processing.selection.lines.line import LINE_RECORD, Line, line_of_content
from hltnode.processing.selection.lines.line_type import LineType
from hltnode.processing.selection.lines.prefilter import Prefilter, named
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.model_file import read_model, table_of_text
from hltnode.processing.selection.models.table import ModelTable
from hltnode.protocol.raw_data.reports import MAX_LINES

_KEYS = ("lines", "menu", "sequence", "conditions", "models", "line_files", "line_packages")


DEFAULT_MENU = "default"
"""Name of the menu that runs by default, unless the chain names it otherwise."""


@dataclass(frozen=True, slots=True)
class NamedMenu:
    """Lines that a configuration may choose instead of the default ones.

    lines_of: lines by sequence name, for sequences that make more inputs than `lines` need.
    not_available: lines of the experiment that belong to it and that no sequence can run, with the reason.
    """

    lines: tuple[LineType, ...]
    not_available: Mapping[str, str] = field(default_factory=dict)
    lines_of: Mapping[str, tuple[LineType, ...]] = field(default_factory=dict)

    def of(self, sequence: str | None) -> tuple[LineType, ...]:
        """The lines of a sequence; None: the default one."""
        return self.lines if sequence is None else self.lines_of.get(sequence, self.lines)


@dataclass(frozen=True, slots=True)
class Menu:
    """The line types of a chain, which configurations name by class name, and its default lines.

    lines_of: default lines by sequence name, for sequences that make other inputs than those of `lines`.
    not_available: lines that no sequence can run, with the reason. prefilters: those that its lines and configurations
    may name. name: name of this menu; others: the menus that a configuration may choose instead. model_fields: fields
    of its inputs whose trees a configuration may name, with the number of their features.
    """

    types: tuple[type[LineType], ...]
    lines: tuple[LineType, ...]
    lines_of: Mapping[str, tuple[LineType, ...]] = field(default_factory=dict)
    not_available: Mapping[str, str] = field(default_factory=dict)
    prefilters: tuple[Prefilter, ...] = ()
    name: str = DEFAULT_MENU
    others: Mapping[str, NamedMenu] = field(default_factory=dict)
    model_fields: Mapping[str, int] = field(default_factory=dict)

    @property
    def prefilters_by_name(self) -> dict[str, Prefilter]:
        """The prefilters by their names."""
        return named(self.prefilters)

    def of(self, sequence: str | None, name: str | None = None) -> tuple[LineType, ...]:
        """The lines of a sequence, of the default menu or of the named one.

        Raises TriggerConfigError for an unknown name.
        """
        if name is not None and name in self.others:
            return self.others[name].of(sequence)
        if name not in (None, self.name):
            raise TriggerConfigError(
                f"menu.name: there is no menu {shown(name)}; there are {', '.join((self.name, *self.others))}"
            )
        return self.lines if sequence is None else self.lines_of.get(sequence, self.lines)


@dataclass(frozen=True, slots=True)
class Override:
    """A value for one constant of one algorithm."""

    algorithm: str
    constant: str
    value: float | int


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
                    overrides.append(_override(algorithm, constant, value))
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
        configured, overrides = _parse_sequence(content.get("sequence", {}))
        conditions = parse_conditions(content.get("conditions", {}))
        sequence = configured if sequence is None else sequence
        if "lines" in content and "menu" in content:
            raise TriggerConfigError("menu: [[lines]] replace the menu, so it cannot be changed")
        name = None
        if "lines" in content:
            types = _parse_lines(content["lines"], {line_type.__name__: line_type for line_type in menu.types})
        else:
            name, changes = _parse_menu(content.get("menu", {}))
            types = _changed_menu(menu.of(sequence, name), changes)
        field_models = _parse_models(content.get("models", {}), menu, folder)
        with models_of_fields(field_models):
            of_users = list(_of_users(content, folder))
        known = menu.prefilters_by_name
        where = "menu.{}" if "lines" not in content else "line {}"
        lines = (
            *(_made(one, known, where) for one in types),
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
        return _validated(name, type(line), values)

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
        known = {algorithm.name: algorithm for algorithm in sequence}
        for override in self.overrides:
            if override.algorithm not in known:
                raise TriggerConfigError(
                    f"sequence.{override.algorithm}: unknown algorithm; algorithms with constants are "
                    f"{', '.join(algorithm.name for algorithm in sequence if algorithm.constants)}"
                )
            known[override.algorithm] = _with_constant(known[override.algorithm], override)
        _check_shared(known.values())
        return AlgorithmSequence(tuple(known[algorithm.name] for algorithm in sequence))

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
    return Override(algorithm, constant, finite_number(f"sequence.{algorithm}.{constant}", value))


def _parse_lines(entries: object, types: Mapping[str, type[LineType]]) -> tuple[LineType, ...]:
    if not isinstance(entries, list):
        raise TriggerConfigError("lines: an array of tables ([[lines]]) is expected")
    return tuple(_parse_line(f"lines[{i}]", entry, types) for i, entry in enumerate(entries))


def _parse_line(where: str, entry: object, types: Mapping[str, type[LineType]]) -> LineType:
    if not isinstance(entry, Mapping):
        raise TriggerConfigError(f"{where}: a table is expected")
    values: dict[str, Any] = dict(entry)
    type_name = values.pop("type", None)
    if not isinstance(type_name, str) or type_name not in types:
        raise TriggerConfigError(f"{where}.type: {type_name!r} is not one of {', '.join(sorted(types))}")
    return _validated(where, types[type_name], values)


def _made(line: LineType, known: Mapping[str, Prefilter], where: str) -> Line:
    try:
        return line.prefiltered_line(known)
    except LineError as error:
        raise LineError(
            f"{where.format(line.name)}.{error}" if str(error).startswith("prefilters") else str(error)
        ) from error


def _constant(expression: Expression, _: object) -> Expression:
    return expression


def _validated(where: str, line_type: type[LineType], values: Mapping[str, Any]) -> LineType:
    try:
        return line_type(**values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        known = [field.name for field in fields(line_type)]
        near = near_names(key, known, n=1)
        hint = f"; the nearest is {near[0]}" if near and key not in known else ""
        raise TriggerConfigError(f"{where}.{key}: {first['msg']}, not {first['input']!r}{hint}") from error


def _parse_menu(table: object) -> tuple[str | None, Mapping[str, object]]:
    """The name of the menu, and the changes of its lines."""
    if not isinstance(table, Mapping):
        raise TriggerConfigError("menu: a table of lines is expected")
    name = table.get("name")
    if name is not None and not isinstance(name, str):
        raise TriggerConfigError(f"menu.name: the name of a menu is expected, not {name!r}")
    return name, {line: changes for line, changes in table.items() if line != "name"}


def _changed_menu(menu: tuple[LineType, ...], changes: Mapping[str, object]) -> tuple[LineType, ...]:
    """The lines of a menu, with the configured cuts and scales."""
    lines = {line.name: line for line in menu}
    for name, cuts in changes.items():
        if name not in lines:
            raise TriggerConfigError(f"menu.{name}: the menu has no such line; {nearest(name, lines)}")
        if not isinstance(cuts, Mapping) or "name" in cuts:
            raise TriggerConfigError(f"menu.{name}: a table of cuts and scales is expected")
        line = lines[name]
        values = {field.name: getattr(line, field.name) for field in fields(line)}
        lines[name] = _validated(f"menu.{name}", type(line), values | dict(cuts))
    return tuple(lines.values())


def _parse_models(table: object, menu: Menu, folder: Path) -> dict[str, Ensemble]:
    """The trees of the fields that take a model file. Raises TriggerConfigError, which names the key and the file."""
    if not isinstance(table, Mapping):
        raise TriggerConfigError("models: a table of fields with their model files is expected")
    found: dict[str, Ensemble] = {}
    for name, path in table.items():
        if name not in menu.model_fields:
            known = ", ".join(menu.model_fields) or "none"
            raise TriggerConfigError(f"models.{shown(name)}: no such field takes a model file; there are {known}")
        if not isinstance(path, str):
            raise TriggerConfigError(f"models.{name}: the name of a model file is expected, not {path!r}")
        try:
            model = read_model(folder / path).table
        except ModelError as error:
            raise ModelError(f"models.{name}: {error}") from error
        if not isinstance(model, Ensemble):
            raise ModelError(f"models.{name}: {folder / path}: {model.kind}: the field takes decision trees")
        if model.n_features != menu.model_fields[name]:
            raise ModelError(
                f"models.{name}: {folder / path}: its trees take {model.n_features} features, the field has "
                f"{menu.model_fields[name]}"
            )
        found[name] = model
    return found


def _of_users(content: Mapping[str, object], folder: Path) -> Iterator[Declared]:
    for key in ("line_files", "line_packages"):
        names = content.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TriggerConfigError(f"{key}: a list of names is expected")
        for i, name in enumerate(names):
            try:
                yield read_file(folder / name) if key == "line_files" else read_package(name)
            except TriggerConfigError as error:
                raise TriggerConfigError(f"{key}[{i}]: {error}") from error


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
