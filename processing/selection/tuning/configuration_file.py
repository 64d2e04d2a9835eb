"""The tuned configuration as a file that a node reads."""

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Cuts = Mapping[str, Mapping[str, float]]
"""Values of cuts, by line and cut."""


def tuned_text(path: Path, out: Path, sequence: str | None, cuts: Cuts, counts: frozenset[tuple[str, str]]) -> str:
    """The text of a configuration file with other cuts.

    path: the file of the user, valid. out: the new file; relative names of line files and models are adapted to its
    folder.
    sequence: name of the sequence that ran. counts: the cuts (line, cut) that are whole numbers.
    """
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    if sequence is not None:
        content["sequence"] = {**content.get("sequence", {}), "name": sequence}
    if "line_files" in content:
        content["line_files"] = [_moved(path.parent / name, out.parent) for name in content["line_files"]]
    if "models" in content:
        content["models"] = {name: _moved(path.parent / file, out.parent) for name, file in content["models"].items()}
    for line, values in cuts.items():
        changed = {cut: int(value) if (line, cut) in counts else value for cut, value in values.items()}
        _lines_of(content, line).update(changed)
    return f"# Written by hltnode tune from {_on_one_line(path.name)}.\n" + _toml(content)


def _lines_of(content: dict[str, Any], line: str) -> dict[str, Any]:
    """The table of a line of the configuration, or the changes of a line of the menu."""
    if "lines" in content:
        found: dict[str, Any] = next(each for each in content["lines"] if each["name"] == line)
        return found
    changes: dict[str, Any] = content.setdefault("menu", {}).setdefault(line, {})
    return changes


def _moved(file: Path, folder: Path) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()


def _on_one_line(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _toml(content: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """Tables of plain values; values before tables, as TOML demands."""
    plain = [(key, value) for key, value in content.items() if not _is_table(value)]
    text = "".join(f"{_key(key)} = {_value(value)}\n" for key, value in plain)
    for key, value in content.items():
        name = ".".join(_key(each) for each in (*path, key))
        if isinstance(value, dict):
            body = _toml(value, (*path, key))
            text += body if body and all(_is_table(each) for each in value.values()) else f"\n[{name}]\n{body}"
        elif _is_table(value):
            text += "".join(f"\n[[{name}]]\n{_toml(each, (*path, key))}" for each in value)
    return text


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
    )


def _key(key: str) -> str:
    is_bare = key != "" and all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in key)
    return key if is_bare else _text(key)


def _text(text: str) -> str:
    # JSON escapes as TOML does, but for the delete character and surrogate pairs.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(_value(each) for each in value)}]"
        case dict():
            return "{" + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + "}"
    return repr(value)
