"""What the commands share: options, JSON output, and errors that a user can correct."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.event_files import EventFileError

console = Console(stderr=True)
"""Progress and messages; results go to standard output."""

JsonOption = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the result as JSON.")]
GeometryOption = Annotated[
    Path | None,
    typer.Option("--geometry", metavar="DIR", help="Folder of geometry files; the built-in detector if not given."),
]
BackendOption = Annotated[str, typer.Option("--backend", help="auto, cpu or cuda.")]
DeviceOption = Annotated[int, typer.Option("--device", min=0, help="Which GPU of several, counted from 0.")]
ThreadsOption = Annotated[int, typer.Option("--threads", min=0, help="Threads of the CPU back end; 0: one per core.")]
TriggerOption = Annotated[
    Path | None, typer.Option("--trigger", metavar="FILE", help="Trigger configuration (TOML); built-in if not given.")
]
SequenceOption = Annotated[
    str | None,
    typer.Option("--sequence", metavar="NAME", help="The sequence that runs; as configured if not given."),
]
ChainOption = Annotated[str, typer.Option("--chain", metavar="NAME", help="Which of the installed chains to run.")]
DEFAULT_CHAIN = "lhcb"

ServerKeyOption = Annotated[
    Path | None, typer.Option("--server-key", metavar="FILE", help="Public key of the node (NAME.key), for CURVE.")
]
KeyFileOption = Annotated[
    Path | None, typer.Option("--key-file", metavar="FILE", help="Own secret key (NAME.key_secret), for CURVE.")
]


@contextmanager
def user_errors(exit_code: int = 1) -> Iterator[None]:
    """Turn errors of input, geometry, configuration and back end into one line and an exit code.

    Errors of formats, geometry and configuration are ValueErrors.
    """
    try:
        yield
    except (EventFileError, BackendError, ValueError, OSError) as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(exit_code) from error


def write_json(path: Path | None, result: dict[str, Any]) -> None:
    """Write a result as JSON, if a file is given. Raises ValueError, which names the file."""
    if path is not None:
        write_text(path, json.dumps(result, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises ValueError, which names it; the error of a full disk does not."""
    try:
        path.write_text(text)
    except OSError as error:
        raise ValueError(f"{path}: cannot be written: {error.strerror}") from error


def require_writable(*paths: Path | None) -> None:
    """Fail before the work begins, not after it, if a file cannot be written at its path. Raises ValueError, which
    names it."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise ValueError(f"{path}: there is no folder {path.parent}")
        if path is not None and path.is_dir():
            raise ValueError(f"{path}: is a folder")


def require_plots() -> None:
    """Fail before the work begins, not after it, if the libraries for plots are not installed. Raises ValueError."""
    if missing := [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]:
        raise ValueError(f"an HTML report needs {' and '.join(missing)}: pip install 'hltnode[plot]'")


def thread_count(threads: int) -> int:
    """Threads to use; 0 means one per core that this process may use."""
    return threads or len(os.sched_getaffinity(0))
