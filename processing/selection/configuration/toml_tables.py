"""The tables of a configuration file that describe lines and models: checked, each fault with its key."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hltnode.processing.framework.near_names import near_names, nearest
from hltnode.processing.selection.configuration.line_files import Declared, read_file, read_package
from hltnode.processing.selection.configuration.menu import Menu
from hltnode.processing.selection.errors import LineError, ModelError, TriggerConfigError, shown
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.lines.line_type import LineType
from hltnode.processing.selection.lines.prefilter import Prefilter
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.model_file import read_model


def parse_lines(entries: object, types: Mapping[str, type[LineType]]) -> tuple[LineType, ...]:
    """The lines of `[[lines]]`. types: by the names that a file may use. Raises TriggerConfigError."""
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
    return validated_line(where, types[type_name], values)


def made_line(line: LineType, known: Mapping[str, Prefilter], where: str) -> Line:
    """A line with its prefilters. where: the key of the line, with {} for its name. Raises LineError."""
    try:
        return line.prefiltered_line(known)
    except LineError as error:
        raise LineError(
            f"{where.format(line.name)}.{error}" if str(error).startswith("prefilters") else str(error)
        ) from error


def validated_line(where: str, line_type: type[LineType], values: Mapping[str, Any]) -> LineType:
    """A line of a type. Raises TriggerConfigError, which names the first wrong value with `where` before its key."""
    try:
        return line_type(**values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        known = [field.name for field in fields(line_type)]
        near = near_names(key, known, n=1)
        hint = f"; the nearest is {near[0]}" if near and key not in known else ""
        raise TriggerConfigError(f"{where}.{key}: {first['msg']}, not {first['input']!r}{hint}") from error


def parse_menu(table: object) -> tuple[str | None, Mapping[str, object]]:
    """The name of the menu, and the changes of its lines. Raises TriggerConfigError."""
    if not isinstance(table, Mapping):
        raise TriggerConfigError("menu: a table of lines is expected")
    name = table.get("name")
    if name is not None and not isinstance(name, str):
        raise TriggerConfigError(f"menu.name: the name of a menu is expected, not {name!r}")
    return name, {line: changes for line, changes in table.items() if line != "name"}


def changed_menu(menu: tuple[LineType, ...], changes: Mapping[str, object]) -> tuple[LineType, ...]:
    """The lines of a menu, with the configured cuts and scales. Raises TriggerConfigError."""
    lines = {line.name: line for line in menu}
    for name, cuts in changes.items():
        if name not in lines:
            raise TriggerConfigError(f"menu.{name}: the menu has no such line; {nearest(name, lines)}")
        if not isinstance(cuts, Mapping) or "name" in cuts:
            raise TriggerConfigError(f"menu.{name}: a table of cuts and scales is expected")
        line = lines[name]
        values = {field.name: getattr(line, field.name) for field in fields(line)}
        lines[name] = validated_line(f"menu.{name}", type(line), values | dict(cuts))
    return tuple(lines.values())


def parse_models(table: object, menu: Menu, folder: Path) -> dict[str, Ensemble]:
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


def declared_by_users(content: Mapping[str, object], folder: Path) -> Iterator[Declared]:
    """What the configured files and packages with lines in Python declare. Raises TriggerConfigError."""
    for key in ("line_files", "line_packages"):
        names = content.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TriggerConfigError(f"{key}: a list of names is expected")
        for i, name in enumerate(names):
            try:
                yield read_file(folder / name) if key == "line_files" else read_package(name)
            except TriggerConfigError as error:
                raise TriggerConfigError(f"{key}[{i}]: {error}") from error
