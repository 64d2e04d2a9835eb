"""Fields of events as flat files: Parquet for pandas, Polars and DuckDB, ROOT for ROOT, RDataFrame and uproot.

A column has the name of its field with `_` for `.`: `long_tracks_pt`. With one row per event, a field of candidates is
a column of lists. With one row per candidate of an input, it is a column of numbers; the fields of events are repeated.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.installation import extra_hint
from hltnode.processing.selection.studies.fields import Field, FieldReader, FieldValues, joined

Columns: TypeAlias = Mapping[str, NDArray[Any]]
Counts: TypeAlias = Mapping[str, NDArray[np.int64]]

EVENT_ROWS = "event"
"""The rows of a file with one row per event."""
EVENT_INDEX = "event_index"
"""Column of a file with one row per candidate: index of the event in the sample, from 0, i64."""
TREE = "events"
"""Name of the TTree of a ROOT file."""
SUFFIXES = (".parquet", ".root")
ROWS_AT_ONCE = 8192
"""Events that are kept until they are written together, as one row group of Parquet or one basket of ROOT: files of
many small groups are slow to write and to read."""
VALUES_AT_ONCE = 1 << 22
"""Number of values that are kept at most, besides those of the last call of `add`."""


class TupleFile(ABC):
    """A file that grows by the values of consecutive events. It gets its name when it is complete.

    fields: the columns. empty: their values for no event. rows: EVENT_ROWS, or the name of the input whose candidates
    are the rows. seconds: time spent on writing, without the opening of the file.

    Raises ValueError for a field of another input than that of the rows.
    """

    def __init__(self, path: Path, fields: Sequence[Field], empty: FieldValues, rows: str) -> None:
        check_rows(fields, rows)
        self.path = path
        self.fields = tuple(fields)
        self.rows = rows
        self.n_rows = 0
        self.seconds = 0.0
        self._n_events = 0
        self._kept: list[FieldValues] = []
        self._n_kept = self._kept_values = 0
        self.unfinished = path.with_name(path.name + ".part")
        columns, counts = self._columns_of(empty)
        self.n_columns = len(columns)
        self._open(columns, counts)

    def add(self, values: FieldValues) -> None:
        """Append events; they are written with later ones. Raises OSError."""
        with self._timed():
            self._add(values)

    def _add(self, values: FieldValues) -> None:
        self._kept.append(values)
        self._n_kept += values.n_events
        self._kept_values += sum(len(column) for column in values.values.values())
        self.n_rows += values.n_events if self.rows == EVENT_ROWS else int(values.counts[self.rows].sum())
        if self._n_kept >= ROWS_AT_ONCE or self._kept_values >= VALUES_AT_ONCE:
            self._write_kept()

    def _write_kept(self) -> None:
        if not self._kept:
            return
        values = joined(self._kept)
        columns, counts = self._columns_of(values)
        if values.n_events if self.rows == EVENT_ROWS else len(columns[EVENT_INDEX]):
            self._write(columns, counts)
        self._n_events += values.n_events
        self._kept, self._n_kept, self._kept_values = [], 0, 0

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - begin

    def _columns_of(self, values: FieldValues) -> tuple[Columns, Counts]:
        """The columns, and the number of candidates in each row for the inputs whose columns hold lists."""
        if self.rows == EVENT_ROWS:
            return {field.name: values.values[field.name] for field in self.fields}, values.counts
        event = np.repeat(np.arange(values.n_events), values.counts[self.rows])
        columns: dict[str, NDArray[Any]] = {EVENT_INDEX: self._n_events + event}
        for field in self.fields:
            column = values.values[field.name]
            columns[field.name] = column[event] if field.of_event else column
        return columns, {}

    @abstractmethod
    def _open(self, columns: Columns, counts: Counts) -> None:
        """Open `unfinished` for columns of these types."""

    @abstractmethod
    def _write(self, columns: Columns, counts: Counts) -> None:
        """Append rows."""

    @abstractmethod
    def _close(self) -> None:
        """Write what is left, and close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            with self._timed():
                if kind is None:
                    self._write_kept()
                self._close()
            if kind is None:
                self.unfinished.replace(self.path)
        finally:
            self.unfinished.unlink(missing_ok=True)


def tuple_file(path: Path, reader: FieldReader, rows: str = EVENT_ROWS) -> TupleFile:
    """The file of the format that the suffix of the path selects, for the fields of a reader.

    Raises ValueError as TupleFile and check_suffix.
    """
    check_suffix(path)
    return (ParquetFile if path.suffix == ".parquet" else RootFile)(path, reader.fields, reader.empty, rows)


def check_suffix(path: Path) -> None:
    """Raises ValueError for an unknown suffix, or if the library of the format is missing."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: expected one of {', '.join(SUFFIXES)} as suffix")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ValueError(f"{path}: Parquet files need pyarrow: {extra_hint('parquet')}, or write a .root file")


def check_rows(fields: Sequence[Field], rows: str) -> None:
    """Raises ValueError for fields that cannot be columns of such rows."""
    inputs = list(dict.fromkeys(field.input for field in fields if not field.of_event))
    if rows == EVENT_ROWS:
        return
    if rows not in inputs:
        raise ValueError(f"rows {rows!r}: expected {EVENT_ROWS}, or an input with a chosen field: {', '.join(inputs)}")
    for field in fields:
        if not field.of_event and field.input != rows:
            raise ValueError(f"field {field.name!r}: it is no field of {rows}, whose candidates are the rows")


def column_name(field: str) -> str:
    """The name of the column of a field."""
    return field.replace(".", "_")


class ParquetFile(TupleFile):
    """A Parquet file; the metadata of a column hold its unit and description."""

    def _open(self, columns: Columns, counts: Counts) -> None:
        # Local import: pyarrow is an extra.
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._arrow = pa
        about = {field.name: {"unit": field.unit, "description": field.description} for field in self.fields}
        fields = []
        for name, values in columns.items():
            # The first conversion imports pandas, if it is installed: here, and not with the first events.
            kind = pa.array(values).type
            if name.partition(".")[0] in counts:
                kind = pa.list_(pa.field("item", kind, nullable=False))
            fields.append(pa.field(column_name(name), kind, nullable=False, metadata=about.get(name)))
        self._schema = pa.schema(fields)
        self._writer = pq.ParquetWriter(self.unfinished, self._schema)

    def _write(self, columns: Columns, counts: Counts) -> None:
        pa = self._arrow
        arrays = []
        for field, (name, values) in zip(self._schema, columns.items(), strict=True):
            array = pa.array(values)
            count = counts.get(name.partition(".")[0])
            if count is not None:
                offsets = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
                array = pa.ListArray.from_arrays(pa.array(offsets), array, type=field.type)
            arrays.append(array)
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def _close(self) -> None:
        self._writer.close()


class RootFile(TupleFile):
    """A ROOT file with the TTree `events`; `nlong_tracks` counts the elements of the branches `long_tracks_...`."""

    def _open(self, columns: Columns, counts: Counts) -> None:
        # Local import: uproot takes half a second to import.
        import uproot

        self._file = uproot.recreate(self.unfinished)
        branches = self._branches(columns, counts)
        types = {name: values.type.content if name in counts else values.dtype for name, values in branches.items()}
        self._tree = self._file.mktree(TREE, types, title="fields of events, written by hltnode")

    def _write(self, columns: Columns, counts: Counts) -> None:
        self._tree.extend(self._branches(columns, counts))

    @staticmethod
    def _branches(columns: Columns, counts: Counts) -> dict[str, Any]:
        """Arrays by the name of the branch; the fields of an input with lists as one array of records."""
        # Local import: awkward takes a third of a second to import.
        import awkward as ak

        branches: dict[str, Any] = {}
        lists: dict[str, dict[str, Any]] = {}
        for name, values in columns.items():
            of, _, field = name.partition(".")
            if of in counts:
                lists.setdefault(of, {})[column_name(field)] = ak.unflatten(values, counts[of])
            else:
                branches[column_name(name)] = values
        return branches | {name: ak.zip(members) for name, members in lists.items()}

    def _close(self) -> None:
        self._file.close()
