"""Descriptions of configuration keys, for the reference page and for `hltnode config`."""

import types
import typing
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

_NAMES = {int: "integer", str: "text", Path: "path", bool: "true or false", float: "number"}


def type_name(annotation: Any) -> str:
    """The type of a key; for a closed set of values, the values (`auto or cpu`)."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return type_name(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_name(part) for part in typing.get_args(annotation) if part is not types.NoneType)
    if origin is tuple:
        return f"list of {type_name(typing.get_args(annotation)[0])}"
    if origin is dict:
        key, value = typing.get_args(annotation)
        return f"table of {type_name(value)} by {type_name(key)}"
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return " or ".join(f"`{member}`" for member in annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        keys = (f"`{key}` ({type_name(field.annotation)})" for key, field in annotation.model_fields.items())
        return f"table of {', '.join(keys)}"
    return _NAMES[annotation]


def has_default(field: FieldInfo) -> bool:
    """False if the description of the key explains its default."""
    return field.default not in (None, PydanticUndefined)


def default(field: FieldInfo) -> str:
    """The default of a key."""
    return f"`{number(field.default)}`" if has_default(field) else "see meaning"


def number(value: object) -> str:
    """A value with grouped digits."""
    return f"{value:_}" if isinstance(value, int) and value >= 100_000 else str(value)


def limits(field: FieldInfo) -> str:
    """The bounds of a key; empty if it has none."""
    bounds = []
    for rule in field.metadata:
        for attribute, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
            value = getattr(rule, attribute, None)
            if value is not None:
                bounds.append(f"{sign} {number(value)}")
    return ", ".join(bounds)


def toml_value(value: object) -> str:
    """A default as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | Path):
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return f"[{', '.join(toml_value(each) for each in value)}]"
    return number(value)
