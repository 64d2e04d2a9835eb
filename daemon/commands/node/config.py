"""hltnode config: the configuration keys, and a check of a configuration."""

import inspect
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from hltnode.daemon.commands.common import console, fail, require_files, user_errors
from hltnode.daemon.commands.completion import complete_configuration_keys
from hltnode.daemon.commands.node.findings import configuration_problems
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.common.package_files import example_configuration
from hltnode.daemon.configuration import description
from hltnode.daemon.configuration.loading import section_of
from hltnode.daemon.configuration.model import NodeConfig, variable_of
from hltnode.daemon.node.hot_reload import HOT_KEYS
from hltnode.processing.framework.near_names import expected_one_of

WIDTH = 100

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Explain the configuration keys, and check a configuration.",
    invoke_without_command=True,
)


@app.callback()
def config(
    context: typer.Context,
    defaults: Annotated[bool, typer.Option("--defaults", help="Print every key with its default and meaning.")] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Print an example to start from: a farm node with every key.")
    ] = False,
) -> None:
    """Explain the configuration keys, and check a configuration. Exit code 1 if it has problems.

    Examples: hltnode config --example > node.toml

    hltnode config explain builder.min_feeders
    """
    if defaults:
        echo(defaults_as_toml())
    elif example:
        typer.echo(example_configuration(), nl=False)
    elif context.invoked_subcommand is None:
        echo(context.get_help())


@app.command()
def check(file: Annotated[Path, typer.Argument(metavar="FILE", help="Configuration of a node (TOML).")]) -> None:
    """Check FILE and the environment as `hltnode serve` would read them, and list all problems.

    The check also reads the trigger configuration, geometry, keys and token. Example: hltnode config check node.toml
    """
    with user_errors():
        require_files(file)
        problems = configuration_problems(file)
    for line in problems:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if problems:
        n = len(problems)
        console.print(f"[red]{n} problem{'s' * (n > 1)}[/red]", highlight=False)
        raise typer.Exit(1)
    echo(f"{file}: valid")


@app.command()
def explain(
    key: Annotated[
        str,
        typer.Argument(metavar="KEY", help="SECTION.KEY, or a SECTION.", autocompletion=complete_configuration_keys),
    ],
) -> None:
    """Explain a key, or list the keys of a section.

    Example: hltnode config explain pipeline.slots
    """
    section, _, name = key.strip("[]").partition(".")
    if section not in NodeConfig.model_fields:
        fail(f"{key}: unknown section{expected_one_of(section, NodeConfig.model_fields)}")
    fields = section_of(section).model_fields
    if not name:
        echo(f"[{section}] {inspect.cleandoc(section_of(section).__doc__ or '')}\n\n" + "\n".join(fields))
        return
    if name not in fields:
        fail(f"{key}: unknown key{expected_one_of(name, fields)}")
    field = fields[name]
    default = description.toml_value(field.default) if description.has_default(field) else "not set; see above"
    lines = [f"{section}.{name}", "", *_wrapped(field.description), ""]
    lines += [f"type         {description.type_name(field.annotation)}", f"default      {default}"]
    if limits := description.limits(field):
        lines.append(f"limits       {limits}")
    lines.append(f"environment  {variable_of(section, name)}")
    is_hot = (section, name) in HOT_KEYS
    lines.append(f"changed by   {'SIGHUP or hltnode ctl reload' if is_hot else 'a restart of the node'}")
    echo("\n".join(lines))


def defaults_as_toml() -> str:
    """Every key with its meaning and default as TOML; a key without a fixed default is commented out."""
    lines: list[str] = []
    for section in NodeConfig.model_fields:
        lines += [f"[{section}]", *_comment(section_of(section).__doc__)]
        for key, field in section_of(section).model_fields.items():
            lines += ["", *_comment(field.description)]
            is_set = description.has_default(field)
            lines.append(f"{key} = {description.toml_value(field.default)}" if is_set else f"# {key} =")
        lines.append("")
    return "\n".join(lines)


def _wrapped(text: str | None) -> list[str]:
    return textwrap.wrap(" ".join((text or "").split()), WIDTH)


def _comment(text: str | None) -> list[str]:
    return [f"# {line}" for line in _wrapped(text)]
