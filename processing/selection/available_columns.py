"""Which columns of a sequence lines may read, and what a line reads that the sequence does not make."""

from collections.abc import Iterable

from hltnode.processing.framework.batch import BATCH_INPUTS
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.selection.lines.composite import basic_columns, combinations_of


def columns_of(sequence: AlgorithmSequence) -> frozenset[Column]:
    """The columns that lines of a sequence may read."""
    return frozenset((*sequence.columns, *BATCH_INPUTS))


def missing_columns(columns: Iterable[Column], have: frozenset[Column]) -> str:
    """The collections, or columns of collections, that are not among the columns of a sequence, as text.

    Empty if it has all.
    """
    absent = [column for column in basic_columns(columns) if column not in have]
    if not absent:
        return ""
    made = {_collection(column) for column in have}
    names = [column.name if _collection(column) in made else _collection(column) for column in absent]
    return ", ".join(dict.fromkeys(names))


def reader_of(columns: Iterable[Column], have: frozenset[Column]) -> str:
    """The composite that reads a missing column, or "it" for the line itself."""
    return next(
        (f"composite {each.name}" for each in combinations_of(columns) if missing_columns(each.reads, have)), "it"
    )


def _collection(column: Column) -> str:
    return column.name.rpartition(".")[0]
