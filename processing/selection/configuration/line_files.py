"""Lines and histograms of users: Python files and installed packages that a trigger configuration names.

They are trusted code: Python runs them with the rights of the process that reads the configuration (SECURITY.md).
"""

import runpy
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar

from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.line import Line

ENTRY_POINTS = "hltnode.lines"
"""Entry point group of installed packages that offer lists of lines."""
LINES, HISTOGRAMS = "lines", "histograms"
"""Names of the lists that a file defines; at least one is required."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Declared:
    """Content of a file or a package; `histograms` excludes those of the lines."""

    lines: tuple[Line, ...]
    histograms: tuple[Histogram, ...] = ()


def read_file(path: Path) -> Declared:
    """The lines and histograms of a Python file. Raises TriggerConfigError, which names the file."""
    if path.is_dir():
        raise TriggerConfigError(f"{path}: a Python file is expected, this is a folder")
    try:
        content = runpy.run_path(str(path))
    except TriggerConfigError as error:
        raise TriggerConfigError(f"{path}: {error}") from error
    except OSError as error:
        raise TriggerConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: it would end the command without a message
        raise TriggerConfigError(f"{path}: {type(error).__name__}: {error}{_place(path, error)}") from error
    if LINES not in content and HISTOGRAMS not in content:
        raise TriggerConfigError(f"{path}: a list of lines named {LINES!r} is expected, or one of {HISTOGRAMS!r}")
    histograms = _checked(str(path), content.get(HISTOGRAMS, ()), Histogram, HISTOGRAMS)
    try:
        for histogram in histograms:
            histogram.recorded()
    except TriggerConfigError as error:
        raise TriggerConfigError(f"{path}: {error}") from error
    return Declared(_checked(str(path), content.get(LINES, ()), Line, LINES), histograms)


def read_package(name: str) -> Declared:
    """The lines that an installed package offers under a name. Raises TriggerConfigError."""
    offered = entry_points(group=ENTRY_POINTS)
    if name not in offered.names:
        raise TriggerConfigError(
            f"no installed package offers {name!r}: there are {', '.join(offered.names) or 'none'}"
        )
    try:
        content = offered[name].load()
    except (ImportError, AttributeError) as error:
        raise TriggerConfigError(f"{name}: {offered[name].value} cannot be loaded: {error}") from error
    return Declared(_checked(name, content, Line, LINES))


def _checked(where: str, content: object, kind: type[T], what: str) -> tuple[T, ...]:
    if not isinstance(content, Iterable):
        raise TriggerConfigError(f"{where}: a list of {what} is expected, not {content!r}")
    found = tuple(content)
    for each in found:
        if not isinstance(each, kind):
            raise TriggerConfigError(f"{where}: a list of {what} is expected, it contains {each!r}")
    return found


def _place(path: Path, error: BaseException) -> str:
    """The line of the file that raised an exception."""
    of_file = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f" ({path.name}:{of_file[-1]})" if of_file else ""
