"""Reading the configuration: file and environment become a `NodeConfig`, or an error that names what to correct."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError

from hltnode.daemon.configuration.model import ENV_DELIMITER, ENV_PREFIX, NodeConfig

RENAMED = {
    "builder.feeders": "it is two keys now: builder.min_feeders, connected feeders that make the node ready, and "
    "builder.max_feeders, the most that may take part",
}
"""Keys of earlier versions, and what to write instead."""


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the file, the key and what was expected."""


def load_config(path: Path | str) -> NodeConfig:
    """Read the TOML file `path`, apply the environment, and check everything.

    Raises:
        ConfigError: unreadable file, broken TOML, unknown key or section, value of a wrong type or out of range; one
            line for each of them.
    """
    path = Path(path)
    try:
        values = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not a TOML file: {error}") from error
    problems = list(_unknown_variables(os.environ))
    for section, value in list(values.items()):
        if section in NodeConfig.model_fields and not isinstance(value, dict):
            problems.append(f"{path}: {section}: expected a section [{section}], not {value!r}")
            del values[section]
    try:
        config = NodeConfig(**values)
    except ValidationError as error:
        problems += [line for item in error.errors(include_url=False) for line in _explain(path, dict(item))]
    except SettingsError as error:
        problems.append(f"environment: {error}: expected a JSON value, for example [0, 2048]")
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    return config


def _unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """pydantic-settings ignores a variable whose section does not exist; a misspelt one must not be ignored."""
    for variable in environment:
        name = variable.upper()
        if not name.startswith(ENV_PREFIX) or ENV_DELIMITER not in name:
            continue
        section, _, key = name.removeprefix(ENV_PREFIX).lower().partition(ENV_DELIMITER)
        if section not in NodeConfig.model_fields:
            known = ", ".join(NodeConfig.model_fields)
            yield f"environment: {variable}: unknown section {section!r}; expected one of {known}"
        elif renamed := RENAMED.get(f"{section}.{key}"):
            yield f"environment: {variable}: {renamed}"
        elif key not in section_of(section).model_fields:
            known = ", ".join(section_of(section).model_fields)
            yield f"environment: {variable}: unknown key; expected one of {known}"


def section_of(name: str) -> type[BaseModel]:
    """The model of a section. Raises KeyError."""
    annotation = NodeConfig.model_fields[name].annotation
    assert isinstance(annotation, type)
    assert issubclass(annotation, BaseModel)
    return annotation


def _explain(path: Path, item: dict[str, Any]) -> Iterator[str]:
    location = [str(part) for part in item["loc"] if part != "tuple"]
    variable = ENV_PREFIX + ENV_DELIMITER.join(location[:2]).upper()
    is_variable = variable in os.environ
    origin = f"environment: {variable}" if is_variable else f"{path}"
    where = f"{origin}: {'.'.join(location)}: " if location else f"{origin}: "
    if item["type"] == "extra_forbidden":
        renamed = RENAMED.get(".".join(location))
        unknown = f"unknown {'section' if len(location) == 1 else 'key'}; expected {_known_keys(location)}"
        yield f"{where}{renamed or unknown}"
        return
    message = item["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    if is_variable and item["type"] == "tuple_type":
        message += " as JSON, for example [0, 2048]"
    value = f", not {item['input']!r}" if location else ""
    for line in message.splitlines():
        yield f"{where}{line}{value}"


def _known_keys(location: list[str]) -> str:
    if len(location) == 1:
        return "one of " + ", ".join(NodeConfig.model_fields)
    if location[0] in NodeConfig.model_fields:
        return "one of " + ", ".join(section_of(location[0]).model_fields)
    return "another key"
