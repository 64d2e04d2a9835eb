"""Options of the commands that print tables: which rows, and in which order."""

from typing import Annotated

import typer

from hltnode.processing.selection.studies.row_choice import Order, RowChoice

LinesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lines",
        metavar="GLOB",
        help="Show only lines whose name matches, such as 'Hlt1*Muon*' (* and ? stand for any characters); repeatable. "
        "JSON results have all lines.",
    ),
]
RowsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lines",
        metavar="GLOB",
        help="Show only rows whose name matches, such as '*long*' (* and ? stand for any characters); repeatable. "
        "JSON results and HTML reports have all rows.",
    ),
]
NonzeroOption = Annotated[bool, typer.Option("--nonzero", help="Leave out rows whose numbers are all zero.")]
OrderOption = Annotated[Order, typer.Option("--order", help="rate: highest first; name: alphabetical.")]
RowOrderOption = Annotated[
    Order | None,
    typer.Option("--order", help="rate: highest rate or largest difference first; name: alphabetical."),
]


def row_choice(lines: list[str] | None, nonzero: bool, order: Order | None) -> RowChoice:
    """The choice of the three options."""
    return RowChoice(patterns=tuple(lines or ()), nonzero=nonzero, order=order)
