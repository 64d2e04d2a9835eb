"""Lines of users: Python files and installed packages that a trigger configuration names.

They are trusted code: Python runs them with the rights of the process that reads the configuration (SECURITY.md).
"""

import runpy
import traceback
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.line import Line

ENTRY_POINTS = "hltnode.lines"
"""The group of entry points under which installed packages offer lists of lines."""
VARIABLE = "lines"
"""The list that a file of lines defines."""


def lines_of_file(path: Path) -> tuple[Line, ...]:
    """The lines of a Python file: its variable `lines`. Raises TriggerConfigError, which names the file."""
    try:
        content = runpy.run_path(str(path))
    except TriggerConfigError as error:
        raise TriggerConfigError(f"{path}: {error}") from error
    except OSError as error:
        raise TriggerConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:
        raise TriggerConfigError(f"{path}: {type(error).__name__}: {error}{_place(path, error)}") from error
    if VARIABLE not in content:
        raise TriggerConfigError(f"{path}: a list of lines named {VARIABLE!r} is expected")
    return _checked(str(path), content[VARIABLE])


def lines_of_package(name: str) -> tuple[Line, ...]:
    """The lines that an installed package offers under a name. Raises TriggerConfigError."""
    offered = entry_points(group=ENTRY_POINTS)
    if name not in offered.names:
        raise TriggerConfigError(f"{name!r} is offered by no package: there are {', '.join(offered.names) or 'none'}")
    try:
        content = offered[name].load()
    except (ImportError, AttributeError) as error:
        raise TriggerConfigError(f"{name}: {offered[name].value} cannot be loaded: {error}") from error
    return _checked(name, content)


def _checked(where: str, content: object) -> tuple[Line, ...]:
    if not isinstance(content, Iterable):
        raise TriggerConfigError(f"{where}: a list of lines is expected, not {content!r}")
    lines = tuple(content)
    for line in lines:
        if not isinstance(line, Line):
            raise TriggerConfigError(f"{where}: a list of lines is expected, {line!r} is none")
    return lines


def _place(path: Path, error: Exception) -> str:
    """The line of the file at which an exception was raised."""
    of_file = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f" ({path.name}:{of_file[-1]})" if of_file else ""
