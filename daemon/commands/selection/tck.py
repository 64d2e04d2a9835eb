"""hltnode tck: trigger configurations and their keys, which decisions and reports contain."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    SequenceOption,
    TriggerOption,
    require_writable,
    user_errors,
    write_text,
)
from hltnode.daemon.commands.completion import complete_tcks
from hltnode.daemon.commands.result_files import require_new, result_file
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.text_console import TextConsole
from hltnode.processing.selection.configuration.tck import TCK_SUFFIX, TckDocument, differences
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.studies.tck_documents import built_in_documents, find_document
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="List, show, compare and export trigger configurations by their keys.",
    no_args_is_help=True,
)

WhichArgument = Annotated[
    str,
    typer.Argument(
        metavar="TCK",
        help="Key of a built-in configuration (0x1234ABCD), or a document.",
        autocompletion=complete_tcks,
    ),
]


@app.command(name="list")
def list_documents(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder with documents; only the built-in ones if not given.")
    ] = None,
    chain: ChainOption = DEFAULT_CHAIN,
) -> None:
    """List the built-in configurations of a chain, and the documents of a folder.

    Example: hltnode tck list /var/lib/hltnode/tck
    """
    table = Table("TCK", "chain", "sequence", "lines", "from")
    with user_errors():
        known = installed_chain(chain)
        for document in built_in_documents(known):
            table.add_row(*_summary(known, document), "built-in")
        if directory is not None and not directory.is_dir():
            raise ValueError(f"{directory}: no such folder")
        for path in sorted(directory.glob(f"*{TCK_SUFFIX}")) if directory is not None else ():
            try:
                table.add_row(*_summary(known, TckDocument.load(path)), str(path))
            except TriggerConfigError:
                table.add_row("", "", "", "", f"{path}: no TCK document")
    TextConsole(emoji=False, markup=False).print(table)


def _summary(chain: TriggerChain, document: TckDocument) -> tuple[str, str, str, str]:
    """Cells of a row; a document with a former name of the chain shows both names."""
    now = chain.renamed(document).chain
    name = now if now == document.chain else f"{now} (written as {document.chain})"
    return document.name, name, document.sequence, str(len(document.line_names))


@app.command()
def show(tck: WhichArgument, chain: ChainOption = DEFAULT_CHAIN) -> None:
    """Print every value of a configuration.

    Example: hltnode tck show 0x1234ABCD.json
    """
    with user_errors():
        document = find_document(installed_chain(chain), tck)
    echo(f"TCK {document.name}")
    for path, value in document.values.items():
        echo(f"{path} = {value}")


@app.command()
def diff(
    first: WhichArgument,
    second: Annotated[
        str,
        typer.Argument(metavar="OTHER", help="The configuration to compare with.", autocompletion=complete_tcks),
    ],
    chain: ChainOption = DEFAULT_CHAIN,
) -> None:
    """Print the differences of two configurations. Exit code 1 if there are any, like diff.

    Example: hltnode tck diff 0x1234ABCD new.json
    """
    with user_errors():
        known = installed_chain(chain)
        found = differences(find_document(known, first), find_document(known, second))
    for path, (before, after) in found.items():
        echo(f"{path}: {before} -> {after}")
    raise typer.Exit(1 if found else 0)


@app.command()
def export(
    output: Annotated[
        Path | None, result_file("-o", "--output", metavar="FILE", help="File to write; TCK.json if not given.")
    ] = None,
    chain: ChainOption = DEFAULT_CHAIN,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
) -> None:
    """Write the document of a configuration, which is needed to read the reports of a node with this configuration.

    Example: hltnode tck export --trigger trigger.toml -o 0x1234ABCD.json
    """
    with user_errors():
        require_writable(output, reads=(trigger,))
        known = installed_chain(chain)
        document = known.document(known.load_trigger(trigger, sequence))
        path = Path(document.name + TCK_SUFFIX) if output is None else output
        require_new(path)
        write_text(path, document.text)
    echo(f"TCK {document.name} in {path}")
