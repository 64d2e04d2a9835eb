"""Code shared by the commands: options, JSON output, and errors that a user can correct."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NoReturn, TextIO, cast

import typer

from hltnode.daemon.commands.completion import complete_chains, complete_sequences
from hltnode.daemon.commands.result_files import STANDARD_OUTPUT, check_json_file
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.common.background_stream import BackgroundStream
from hltnode.processing.framework.installation import extra_hint

if TYPE_CHECKING:
    from hltnode.daemon.commands.text_console import TextConsole
    from hltnode.processing.framework.event_files import DamageLog


class _StandardError:
    """The standard error of the moment, written in the background: progress and messages never stop a command."""

    def __init__(self) -> None:
        self._of: TextIO | None = None
        self._stream = BackgroundStream(sys.stderr)

    def __getattr__(self, name: str) -> Any:
        if sys.stderr is not self._of:
            self._of = sys.stderr
            self._stream = BackgroundStream(sys.stderr)
        return getattr(self._stream, name)


class _Console:
    """Makes the console when it is first used: the import of rich costs 50 ms, and `--help` needs no console."""

    def __init__(self) -> None:
        self._made: TextConsole | None = None

    def _console(self) -> "TextConsole":
        if self._made is None:
            from hltnode.daemon.commands.text_console import TextConsole

            self._made = TextConsole(file=cast("TextIO", _StandardError()), emoji=False)
        return self._made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._console(), name)

    def __enter__(self) -> "TextConsole":
        self._console().__enter__()
        return self._console()

    def __exit__(self, *error: Any) -> None:
        self._console().__exit__(*error)


console = cast("TextConsole", _Console())
"""Console for progress and messages; results go to standard output."""

COLUMNS = 80

JsonOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        callback=check_json_file,
        help="Also write the result as JSON; - stands for standard output, and text then goes to standard error.",
    ),
]
GeometryOption = Annotated[
    Path | None,
    typer.Option("--geometry", metavar="DIR", help="Folder of geometry files; the built-in detector if not given."),
]
ConditionsOption = Annotated[
    Path | None,
    typer.Option(
        "--conditions",
        metavar="DIR",
        help="Folder with the conditions of each run; a run without conditions is an error.",
    ),
]
BackendOption = Annotated[str, typer.Option("--backend", help="auto, cpu or cuda.")]
DeviceOption = Annotated[int, typer.Option("--device", min=0, help="Number of the GPU, counted from 0.")]
ThreadsOption = Annotated[int, typer.Option("--threads", min=0, help="Threads of the CPU back end; 0: one per core.")]
TriggerOption = Annotated[
    Path | None, typer.Option("--trigger", metavar="FILE", help="Trigger configuration (TOML); built-in if not given.")
]
SequenceOption = Annotated[
    str | None,
    typer.Option(
        "--sequence",
        metavar="NAME",
        help="Sequence to run; that of the configuration if not given.",
        autocompletion=complete_sequences,
    ),
]
ChainOption = Annotated[
    str,
    typer.Option("--chain", metavar="NAME", help="Name of the installed chain to run.", autocompletion=complete_chains),
]
DEFAULT_CHAIN = "lhcb"
EncodingOption = Annotated[str, typer.Option("--encoding", help="Banks to read if events hold the same hits twice.")]
DEFAULT_ENCODING = "auto"
"""AUTO of `framework.readout`, whose import costs that of NumPy."""

ServerKeyOption = Annotated[
    Path | None, typer.Option("--server-key", metavar="FILE", help="Public key of the node (NAME.key), for CURVE.")
]
KeyFileOption = Annotated[
    Path | None, typer.Option("--key-file", metavar="FILE", help="Own secret key (NAME.key_secret), for CURVE.")
]


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn errors of input, geometry, configuration and back end into one line and exit code 2.

    Exit code 2: the command could not do its work. Exit code 1: the command did its work with a bad result, such as
    decisions that differ.

    Errors of formats, geometry and configuration are ValueErrors.
    """
    try:
        yield
    except BrokenPipeError:
        # The reader closed the pipe (`| head`): not an error, the command ends without a message.
        raise
    except Exception as error:
        if not _can_be_corrected(error):
            raise
        if type(error).__str__ is OSError.__str__ and isinstance(error, OSError) and error.filename is not None:
            fail(f"{error.filename}: {error.strerror}", error)
        fail(str(error), error)


def _can_be_corrected(error: Exception) -> bool:
    # Local import: commands without computation do not load NumPy.
    from hltnode.processing.framework.backends.interface import BackendError
    from hltnode.processing.framework.event_files import EventFileError

    return isinstance(error, EventFileError | BackendError | ValueError | OSError)


def fail(text: str, cause: Exception | None = None) -> NoReturn:
    """Print an error and end with exit code 2."""
    _print_error(text)
    raise typer.Exit(2) from cause


def _print_error(text: str) -> None:
    from rich.markup import escape

    console.print(f"[red]error:[/red] {escape(text)}", highlight=False, soft_wrap=True)


def echo_folded(*parts: str) -> None:
    """Print parts in lines of at most 80 columns, without splitting a part."""
    lines = [""]
    for part in parts:
        if lines[-1].strip() and len(lines[-1] + part.rstrip()) > COLUMNS:
            lines.append("  ")
        lines[-1] += part
    echo("\n".join(line.rstrip() for line in lines))


def write_json(path: Path | None, result: dict[str, Any]) -> None:
    """Write a result as JSON, if a file or standard output is given. Raises ValueError with the name of the file."""
    if path == STANDARD_OUTPUT:
        typer.echo(json_text(result))
    elif path is not None:
        write_text(path, json_text(result) + "\n")


def json_text(result: dict[str, Any]) -> str:
    """The JSON text of a result: indented, but elements of "per_event" have a line each.

    Python indents 20 times as slowly as it encodes: for a sample, that takes as long as its selection.
    """
    texts = []
    for name, value in result.items():
        if name == "per_event":
            text = "[" + ",".join(f"\n  {json.dumps(event)}" for event in value) + "\n ]"
        else:
            text = json.dumps(value, indent=1).replace("\n", "\n ")
        texts.append(f"\n {json.dumps(name)}: {text}")
    return "{" + ",".join(texts) + "\n}"


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises ValueError with its name, which the OSError of a full disk lacks."""
    try:
        path.write_text(text)
    except OSError as error:
        raise ValueError(f"{path}: cannot be written: {error.strerror}") from error


def require_files(*paths: Path | None) -> None:
    """Fail before the work starts if a file is missing or unreadable. Raises ValueError with its name."""
    for path in paths:
        if path is None:
            continue
        if path.is_dir():
            raise ValueError(f"{path}: is a folder, expected a file")
        if path.is_fifo():
            # Opening a pipe would wait for its writer. A configuration may come from a pipe; readers of events refuse
            # it.
            continue
        try:
            path.open("rb").close()
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from error


def require_writable(*paths: Path | None, reads: Iterable[Path | None] = ()) -> None:
    """Fail before the work starts if an output file cannot be written, or is another file of the same command.

    Raises ValueError with the name of the file.
    """
    others = [path for path in reads if path is not None]
    for path in paths:
        if path is None or path == STANDARD_OUTPUT:
            continue
        if not path.parent.is_dir():
            raise ValueError(f"{path}: there is no folder {path.parent}")
        if path.is_dir():
            raise ValueError(f"{path}: is a folder")
        for other in others:
            if path == other or (path.exists() and other.exists() and path.samefile(other)):
                raise ValueError(f"{path}: cannot be written, it is {other} of the same command")
        others.append(path)


@contextmanager
def complete_file(path: Path) -> Iterator[BinaryIO]:
    """A file for writing. It gets its name when it is complete; an incomplete file is removed.

    A device or a pipe is written at once. Raises ValueError with the name of the file if a write fails.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise ValueError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def require_packages(what: str, *packages: str, extra: str = "plot") -> None:
    """Fail before the work starts if libraries of an extra are missing.

    what: the part of the command that needs them. Raises ValueError.
    """
    if missing := [package for package in packages if find_spec(package) is None]:
        raise ValueError(f"{what} needs {' and '.join(missing)}: {extra_hint(extra)}")


def end_with_damage(damage: "DamageLog") -> None:
    """End with exit code 1 and an error line for each event that could not be read; do nothing without one."""
    for text in damage.first:
        _print_error(text)
    if damage.n > len(damage.first):
        _print_error(f"and {damage.n - len(damage.first)} more")
    if damage.n:
        raise typer.Exit(1)


def unknown_source_text(what: str, bank_types: Sequence[int]) -> str:
    """The message about banks of these types that no known source sends; `what` says what is not done with them."""
    kind = "type" if len(bank_types) == 1 else "types"
    return (
        f"{what}: banks of {kind} {', '.join(map(str, bank_types))}, whose source is not known: they need source ids "
        "with a sub-detector"
    )


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 MEP`, `2 MEPs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def thread_count(threads: int) -> int:
    """Number of threads; 0 becomes one per core that affinity and control groups leave to this process."""
    # Local import: commands without computation do not load the framework.
    from hltnode.processing.framework.backends.host_processors import usable_processors

    return threads or usable_processors()
