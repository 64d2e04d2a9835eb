"""Loading of the configuration: a `NodeConfig` from file and environment, or an error that names the wrong key."""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError

from hltnode.daemon.configuration.model import ENV_DELIMITER, ENV_PREFIX, NodeConfig, variable_of
from hltnode.processing.framework.near_names import expected_one_of, near_names

RENAMED = {
    "builder.feeders": "replaced by two keys: builder.min_feeders, connected feeders that make the node ready, and "
    "builder.max_feeders, most feeders of a run",
}
"""Keys of earlier versions, and their replacements."""

SAME_WORD = 0.85
"""Similarity (ratio of difflib) above which a name counts as misspelt: slot and slots have 0.89."""

_KEY = re.compile(r"\b(?P<section>[a-z_]+)\.(?P<key>[a-z_]+)\b")


class ConfigError(ValueError):
    """An invalid configuration; the message names the file, the key and the expected value."""


def load_config(path: Path | str | None) -> NodeConfig:
    """Read the TOML file `path`, apply the environment, and check everything; None: only the environment.

    Raises:
        ConfigError: unreadable file, broken TOML, unknown key, section or variable, value of a wrong type or out of
            range; one line per problem.
    """
    path = None if path is None else Path(path)
    try:
        values = {} if path is None else tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not a TOML file: {error}") from error
    of_variables = dict(_unusable_variables(os.environ))
    problems = [f"environment: {variable}: {problem}" for variable, problem in of_variables.items()]
    for section, value in list(values.items()):
        if section in NodeConfig.model_fields and not isinstance(value, dict):
            problems.append(f"{path}: {section}: expected a section [{section}], not {value!r}")
            del values[section]
    try:
        config = NodeConfig(**values)
    except ValidationError as error:
        items = [dict(item) for item in error.errors(include_url=False)]
        inner = {tuple(_location(item)[:-1]) for item in items}
        for item in items:
            location = _location(item)
            # No second message about an unusable variable, or about a list with wrong elements.
            is_said = of_variables.keys() & set(variables_of(".".join(location))) or tuple(location) in inner - {()}
            if not is_said:
                problems += _explain(path, item)
    except SettingsError as error:
        if not problems:
            problems.append(f"environment: {error}")
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    return config


def variables_of(key: str) -> list[str]:
    """The environment variables that set a key (SECTION.KEY) or a part of it, in their original spelling."""
    name = ENV_PREFIX + key.replace(".", ENV_DELIMITER).upper()
    return [
        variable
        for variable in os.environ
        if (given := variable.upper()) == name
        or given.startswith(name + ENV_DELIMITER)
        or (given.startswith(ENV_PREFIX) and name.startswith(given + ENV_DELIMITER))
    ]


def origin(path: Path | None, *keys: str) -> str:
    """The origin of a value, for an error message: the variables that set one of the keys, or else the file."""
    variables = dict.fromkeys(variable for key in keys for variable in variables_of(key))
    return f"environment: {', '.join(variables)}" if variables else str(path or "defaults")


def keys_in(text: str) -> list[str]:
    """The keys (SECTION.KEY) in a text."""
    return [
        found.group()
        for found in _KEY.finditer(text)
        if found["section"] in NodeConfig.model_fields and found["key"] in section_of(found["section"]).model_fields
    ]


@contextmanager
def errors_of(path: Path | None, key: str, value: Path | None = None) -> Iterator[None]:
    """Turn an error about the value of a key into a ConfigError that names the key.

    For a relative path that does not exist, the message names the current folder.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        relative = value is not None and not value.is_absolute() and not value.exists()
        where = f"; the path starts at the current folder, {Path.cwd()}" if relative else ""
        raise ConfigError(f"{origin(path, key)}: {key}: {text}{where}") from error


def _unusable_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Unusable variables and their problems: an unknown key, which pydantic-settings ignores, or a section that is not
    JSON."""
    for variable, value in environment.items():
        name = variable.upper()
        if not name.startswith(ENV_PREFIX):
            continue
        section, delimiter, key = name.removeprefix(ENV_PREFIX).lower().partition(ENV_DELIMITER.lower())
        if not delimiter:
            if section in NodeConfig.model_fields:
                if not _is_json_object(value):
                    yield variable, f"expected the section as a JSON value, for example {{}}, not {value!r}"
            elif meant := _meant(section, value):
                yield variable, f"not a key; expected {' or '.join(meant)}"
        elif section not in NodeConfig.model_fields:
            yield variable, f"unknown section {section!r}{expected_one_of(section, NodeConfig.model_fields)}"
        elif renamed := RENAMED.get(f"{section}.{key}"):
            yield variable, renamed
        elif key.partition(ENV_DELIMITER)[0] not in (known := section_of(section).model_fields):
            yield variable, f"unknown key{expected_one_of(key, known)}"


def _is_json_object(value: str) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        return False


def _meant(name: str, value: str) -> list[str]:
    """The variables probably meant by one without a section, or with a single underscore after the section.

    Variables of other programs may begin with the same prefix. Kubernetes sets HLTNODE_PORT=tcp://10.0.0.1:5555 for a
    service named hltnode, which looks like http.port.
    """
    if name.endswith("port") and value.startswith("tcp://"):
        return []
    written: dict[str, list[str]] = {}
    for section in NodeConfig.model_fields:
        for key in section_of(section).model_fields:
            for form in (key, f"{section}_{key}"):
                written.setdefault(form, []).append(variable_of(section, key))
    close = near_names(name, written, n=1, similarity=SAME_WORD)
    return written[close[0]] if close else []


def section_of(name: str) -> type[BaseModel]:
    """The model of a section. Raises KeyError."""
    annotation = NodeConfig.model_fields[name].annotation
    assert isinstance(annotation, type)
    assert issubclass(annotation, BaseModel)
    return annotation


def _location(item: dict[str, Any]) -> list[str]:
    return [str(part) for part in item["loc"] if part != "tuple"]


def _explain(path: Path | None, item: dict[str, Any]) -> Iterator[str]:
    location = _location(item)
    key = ".".join(location)
    if item["type"] == "extra_forbidden":
        unknown = f"unknown {'section' if len(location) == 1 else 'key'}{_known_keys(location)}"
        yield f"{origin(path, key)}: {key}: {RENAMED.get(key) or unknown}"
        return
    message = item["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    if item["type"] == "tuple_type" and variables_of(key):
        message += " as JSON, for example [0, 2048]"
    for line in message.splitlines():
        if location:
            yield f"{origin(path, key)}: {key}: {line}, not {item['input']!r}"
        else:
            # A check of several keys; its message names them.
            yield f"{origin(path, *keys_in(line))}: {line}"


def _known_keys(location: list[str]) -> str:
    if len(location) == 1:
        return expected_one_of(location[0], NodeConfig.model_fields)
    if location[0] in NodeConfig.model_fields:
        return expected_one_of(location[1], section_of(location[0]).model_fields)
    return "; expected another key"
