"""The command line: `hltnode COMMAND --help` explains each command with an example.

A command is imported when it is asked for: all of them together take seconds.
"""

from functools import cache
from importlib import import_module

import typer
from typer.core import TyperCommand, TyperGroup

_COMMANDS = {
    "serve": "node.serve",
    "ctl": "node.ctl",
    "replay": "mep_streams.replay",
    "record": "mep_streams.record",
    "process": "events.process",
    "replay-check": "events.replay_check",
    "validate": "physics.validate",
    "compare": "physics.compare",
    "rates": "selection.rates",
    "efficiency": "selection.efficiency",
    "simulate": "events.simulate",
    "parametrise": "physics.parametrise",
    "inspect": "events.inspect",
    "display": "events.display",
    "lines": "selection.lines",
    "histograms": "selection.histograms",
    "demo": "demo",
    "keys": "node.keys",
    "tck": "selection.tck",
}
"""Modules of `commands`: each has a function of its own name, or an `app` of several commands."""


@cache
def import_command(name: str) -> TyperCommand | TyperGroup | None:
    """The command of a name; None if there is none."""
    place = _COMMANDS.get(name)
    if place is None:
        return None
    module = import_module(f"hltnode.daemon.commands.{place}")
    made = getattr(module, "app", None)
    if made is None:
        made = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        made.command(name)(getattr(module, place.rpartition(".")[2]))
    command = typer.main.get_command(made)
    command.name = name
    assert isinstance(command, TyperCommand | TyperGroup)
    return command


class _Commands(TyperGroup):
    """Imports a command when it is run, or when help is shown."""

    def list_commands(self, _ctx: object) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _ctx: object, cmd_name: str) -> TyperCommand | TyperGroup | None:
        return import_command(cmd_name)


app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)


@app.callback()
def _hltnode() -> None:
    """The software of one trigger farm node."""
