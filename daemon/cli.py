"""The command line: `hltnode COMMAND --help` explains each command with an example.

A command is imported only when it runs: the import of all commands takes seconds. The list of commands reads the first
sentence of each help text from its source. Commands that use a tool of a chain have the options of the chain given by
`--chain`.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from hltnode import __version__
from hltnode.processing.framework.near_names import did_you_mean

COMMANDS = "hltnode.daemon.commands"

GROUPS = {
    "First steps": {
        "demo": "demo",
        "chains": "chains",
    },
    "A node": {
        "serve": "node.serve",
        "config": "node.config",
        "doctor": "node.doctor",
        "top": "node.top",
        "shadow": "node.shadow",
        "combine": "node.combine",
        "window": "node.window",
        "ctl": "node.ctl",
        "keys": "node.keys",
    },
    "Many nodes": {
        "farm": "farm.farm",
    },
    "Input of a node": {
        "replay": "mep_streams.replay",
        "stream": "mep_streams.stream",
        "record": "mep_streams.record",
    },
    "Event files": {
        "simulate": "events.simulate",
        "inspect": "events.inspect",
        "display": "events.display",
        "process": "events.process",
        "replay-check": "events.replay_check",
    },
    "Selection": {
        "lines": "selection.lines",
        "rates": "selection.rates",
        "efficiency": "selection.efficiency",
        "tune": "selection.tune",
        "histograms": "selection.histograms",
        "luminosity": "selection.luminosity",
        "tck": "selection.tck",
        "conditions": "selection.conditions",
    },
    "Physics": {
        "validate": "physics.validate",
        "compare": "physics.compare",
        "parametrise": "physics.parametrise",
    },
}
"""The commands by group of `hltnode --help`, with their modules of `commands`.

Each module has a function of its own name, or an `app` of several commands.
"""
_COMMANDS = {name: place for group in GROUPS.values() for name, place in group.items()}


def import_module_of(name: str) -> ModuleType | None:
    """The module of a command; None if no command has this name."""
    place = _COMMANDS.get(name)
    return None if place is None else import_module(f"{COMMANDS}.{place}")


def import_command(name: str, arguments: Sequence[str] = ()) -> TyperCommand | TyperGroup | None:
    """The command with a name; None if there is none.

    arguments: arguments of the command; they may name a chain. Raises ValueError if this chain lacks the tool that the
    command needs.
    """
    module = import_module_of(name)
    if module is None:
        return None
    # Local import: the list of commands needs no module of a command.
    from hltnode.daemon.commands.result_files import with_force

    made = getattr(module, "app", None)
    if made is not None:
        for registered in made.registered_commands:
            registered.callback = with_force(registered.callback)
    else:
        made = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        made.command(name)(with_force(_function_of(module, arguments)))
    command = typer.main.get_command(made)
    command.name = name
    assert isinstance(command, TyperCommand | TyperGroup)
    return command


def _function_of(module: ModuleType, arguments: Sequence[str]) -> Any:
    from hltnode.daemon.commands.tool_command import ToolCommand, chain_named_in

    function = getattr(module, module.__name__.rpartition(".")[2])
    if isinstance(function, ToolCommand):
        return function.of_chain(chain_named_in(arguments) or function.default_chain)
    return function


def command_names() -> list[str]:
    """The names of all commands, in the order of the list."""
    return list(_COMMANDS)


def _first_sentence(name: str) -> str:
    """The first sentence of the help text of a command, read from its source without an import."""
    return " ".join(_help_text(name).split("\n\n")[0].split()).split(". ")[0].removesuffix(".") + "."


def _help_text(name: str) -> str:
    import ast

    place = _COMMANDS[name]
    source = Path(__file__).with_name("commands").joinpath(*place.split(".")).with_suffix(".py")
    function = place.rpartition(".")[2]
    for node in ast.parse(source.read_bytes()).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return ast.get_docstring(node) or ""
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "app":
            assert isinstance(node.value, ast.Call)
            [text] = [word.value for word in node.value.keywords if word.arg == "help"]
            return str(ast.literal_eval(text))
    raise AssertionError(f"{source}: no function {function}, and no app")


class _Commands(TyperGroup):
    """Imports a command only when it runs."""

    def list_commands(self, _ctx: object) -> list[str]:
        return command_names()

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of hltnode. A flag that is not given is False: for None, typer would import pydantic (0.3 s)."""
        params = super().get_params(ctx)
        for param in params:
            if getattr(param, "is_flag", False) and param.default is None:
                param.default = False
        return params

    def get_command(self, _ctx: object, cmd_name: str) -> TyperCommand | None:
        """Name and help of a command, for the list of commands and for the shell."""
        if cmd_name not in _COMMANDS:
            return None
        return TyperCommand(cmd_name, help=_first_sentence(cmd_name), rich_markup_mode=None)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """The commands in groups, each with its whole first sentence."""
        column = max(map(len, _COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                # The padding aligns the descriptions of all groups.
                formatter.write_dl([(name.ljust(column), _first_sentence(name)) for name in group])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command to run."""
        if args and import_module_of(args[0]) is not None:
            from hltnode.daemon.commands.common import user_errors
            from hltnode.daemon.commands.progress import named_compilation
            from hltnode.processing.framework.backends.compilation import observed_by

            ctx.with_resource(observed_by(named_compilation))
            with user_errors():
                return args[0], import_command(args[0], args[1:]), args[1:]
        if args and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = did_you_mean(args[0], _COMMANDS)
            ctx.fail(f"No such command {args[0]!r}{near or '; hltnode --help lists all commands.'}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Coloured tables would double the run time of `hltnode --help`.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"hltnode {__version__}")
        raise typer.Exit


@app.callback()
def _hltnode(
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """The software of one trigger farm node.

    hltnode COMMAND --help explains a command with an example.
    """
