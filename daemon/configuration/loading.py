"""Reading the configuration: file and environment become a `NodeConfig`, or an error that names what to correct."""

import os
import tomllib
from collections.abc import Mapping
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
        ConfigError: unreadable file, broken TOML, unknown key or section, value of a wrong type or out of range.
    """
    path = Path(path)
    try:
        values = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not a TOML file: {error}") from error
    _refuse_unknown_variables(os.environ)
    for section, value in values.items():
        if section in NodeConfig.model_fields and not isinstance(value, dict):
            raise ConfigError(f"{path}: {section}: expected a section [{section}], not {value!r}")
    try:
        return NodeConfig(**values)
    except ValidationError as error:
        lines = [_explain(path, dict(item)) for item in error.errors(include_url=False)]
        raise ConfigError("\n".join(lines)) from error
    except SettingsError as error:
        raise ConfigError(f"environment: {error}: expected a JSON value, for example [0, 2048]") from error


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    """pydantic-settings ignores a variable whose section does not exist; a misspelt one must not be ignored."""
    for variable in environment:
        name = variable.upper()
        if not name.startswith(ENV_PREFIX) or ENV_DELIMITER not in name:
            continue
        section, _, key = name.removeprefix(ENV_PREFIX).lower().partition(ENV_DELIMITER)
        if section not in NodeConfig.model_fields:
            known = ", ".join(NodeConfig.model_fields)
            raise ConfigError(f"environment: {variable}: unknown section {section!r}; expected one of {known}")
        annotation = NodeConfig.model_fields[section].annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel) and key not in annotation.model_fields:
            if renamed := RENAMED.get(f"{section}.{key}"):
                raise ConfigError(f"environment: {variable}: {renamed}")
            known = ", ".join(annotation.model_fields)
            raise ConfigError(f"environment: {variable}: unknown key; expected one of {known}")


def _explain(path: Path, item: dict[str, Any]) -> str:
    location = [str(part) for part in item["loc"] if part != "tuple"]
    variable = ENV_PREFIX + ENV_DELIMITER.join(location[:2]).upper()
    origin = f"environment: {variable}" if variable in os.environ else f"{path}"
    where = f"{origin}: {'.'.join(location)}: " if location else f"{origin}: "
    if item["type"] == "extra_forbidden":
        if renamed := RENAMED.get(".".join(location)):
            return f"{where}{renamed}"
        return f"{where}unknown {'section' if len(location) == 1 else 'key'}; expected {_known_keys(location)}"
    message = item["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    value = f", not {item['input']!r}" if location else ""
    return f"{where}{message}{value}"


def _known_keys(location: list[str]) -> str:
    if len(location) == 1:
        return "one of " + ", ".join(NodeConfig.model_fields)
    annotation = NodeConfig.model_fields[location[0]].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "one of " + ", ".join(annotation.model_fields)
    return "another key"
