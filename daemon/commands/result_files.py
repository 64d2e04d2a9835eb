"""Result files of commands: no command overwrites an existing file, unless it is told to by --force.

An option that names a result file is declared with `result_file`. Its value is checked while the command line is read,
before any work. The command line adds --force to each command with such an option (`with_force`). A command that
chooses the name of a file checks it with `require_new`.
"""

import argparse
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from hltnode.daemon.commands.terminal import shown, text_on_standard_error

STANDARD_OUTPUT = Path("-")
"""The value of --json that stands for standard output."""

FORCE_HELP = "Overwrite existing result files."

_forced: ContextVar[bool] = ContextVar("forced", default=False)


def require_new(*paths: Path | None, force: bool = False) -> None:
    """Raise ValueError, which names --force, for a path with an existing file.

    force: whether files may be overwritten; --force on the command line of the running command has the same effect.
    A device or a pipe is not overwritten, so it may exist.
    """
    for path in paths:
        if path is not None and not (force or _forced.get()) and path.is_file():
            raise ValueError(f"{path}: the file exists; --force overwrites it")


def check_result_file(context: typer.Context, value: Path | None) -> Path | None:
    """The value of an option that names a result file. Ends the command if the file exists."""
    if not context.resilient_parsing:
        try:
            require_new(value)
        except ValueError as error:
            typer.echo(f"{typer.style('error:', fg='red')} {shown(str(error))}", err=True)
            raise typer.Exit(2) from error
    return value


def check_json_file(context: typer.Context, value: Path | None) -> Path | None:
    """The value of --json: a file, or `-` for standard output, which then holds nothing but the JSON text."""
    if value == STANDARD_OUTPUT:
        text_on_standard_error.set(True)
        context.call_on_close(lambda: text_on_standard_error.set(False))
        return value
    return check_result_file(context, value)


CHECKS = (check_result_file, check_json_file)
"""The callbacks of options that name result files."""


def result_file(*declarations: str, metavar: str, help: str) -> Any:
    """An option whose value is the path of a result file."""
    return typer.Option(*declarations, metavar=metavar, help=help, callback=check_result_file)


def _set_force(context: typer.Context, value: bool) -> bool:
    _forced.set(value)
    context.call_on_close(lambda: _forced.set(False))
    return value


ForceOption = Annotated[
    # Eager: it is read before the options with names of files, wherever it stands.
    bool, typer.Option("--force", is_eager=True, expose_value=False, callback=_set_force, help=FORCE_HELP)
]


def with_force(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a command, with the option --force if one of its options names a result file."""
    hints = get_type_hints(function, include_extras=True)
    if "force" in hints or not any(_names_result(hint) for hint in hints.values()):
        return function
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=hints.get(name, parameter.annotation), kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
    ]
    force = inspect.Parameter("force", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=ForceOption)

    def run(**given: Any) -> None:
        given.pop("force", None)
        function(**given)

    run.__signature__ = signature.replace(parameters=[*parameters, force])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*parameters, force)}
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return run


def _names_result(hint: Any) -> bool:
    return any(getattr(info, "callback", None) in CHECKS for info in getattr(hint, "__metadata__", ()))


class ResultParser(argparse.ArgumentParser):
    """A parser of the programs in benchmarks/ and tools/, with the rule of the commands for result files."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.results: list[str] = []

    def add_result_file(self, *names: str, help: str) -> None:
        """Add an option whose value is the path of a result file, and --force before the first one."""
        if not self.results:
            self.add_argument("--force", action="store_true", help=FORCE_HELP)
        self.results.append(self.add_argument(*names, type=Path, metavar="FILE", help=help).dest)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """The arguments. Ends the program with exit code 2 if a result file exists."""
        chosen = super().parse_args(args, namespace)
        try:
            for name in self.results:
                require_new(getattr(chosen, name), force=chosen.force)
        except ValueError as error:
            self.error(str(error))
        return chosen
