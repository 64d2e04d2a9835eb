"""A folder of conditions: for each run the positions of the detector, the beam, the magnet and the masked channels.

docs/formats/conditions.md describes the files. The index `conditions.toml` names the files of each interval of runs:

    format = 1
    chain = "my_chain"
    version = "2026-11"

    [[runs]]
    first = 1000
    last = 1999                                    # left out: no end
    files = ["magnet-down.toml", "fill-9123.toml"]

A run belongs to one interval at most. A run without one has no conditions, and is refused.
"""

import hashlib
import os
import re
import stat
import tomllib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from hltnode.processing.selection.configuration.conditions import (
    AnyCondition,
    Value,
    Values,
    check_values,
    parse_conditions,
)
from hltnode.processing.selection.errors import ConditionsError, TriggerConfigError, shown

INDEX_FILE = "conditions.toml"
FORMAT = 1
MAX_RUN = 0xFFFFFFFF
"""Run numbers have 32 bits."""
MAX_INTERVALS = 100_000
MAX_FILE_BYTES = 16 << 20
MAX_BYTES = 32 << 20
"""Of all files together: a node reads them again at each reload."""

_INDEX_KEYS = {"format", "chain", "version", "runs"}
_INTERVAL_KEYS = {"first", "last", "files"}
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Runs `first` to `last`, both included, and their conditions; `last` is MAX_RUN for an interval without an end.

    files: the names of the files that set the conditions.
    """

    first: int
    last: int
    files: tuple[str, ...]
    values: Values

    @property
    def name(self) -> str:
        """The runs as text."""
        return f"runs {self.first} {'and later' if self.last == MAX_RUN else f'to {self.last}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionsFolder:
    """A checked folder of conditions.

    version: the name that its author gave it. digest: SHA-256 of its files, as hex digits. intervals: by rising run,
    without overlap. unused: TOML files of the folder that no interval names.
    """

    path: Path
    version: str
    digest: str
    intervals: tuple[Interval, ...]
    unused: tuple[str, ...]

    @classmethod
    def load(cls, path: Path, chain: str, known: Sequence[AnyCondition]) -> Self:
        """Read and check a folder for a chain with its conditions.

        Raises ConditionsError, which names the file and the key.
        """
        try:
            return cls._load(path, chain, known)
        except ConditionsError:
            raise
        except (OSError, ValueError) as error:
            # Such as a number of more digits than Python writes.
            raise ConditionsError(f"{path}: {type(error).__name__}: {shown(str(error))}") from error

    @classmethod
    def _load(cls, path: Path, chain: str, known: Sequence[AnyCondition]) -> Self:
        reader = _Reader(path, known)
        index = reader.toml(INDEX_FILE)
        where = path / INDEX_FILE
        _check_keys(where, index, _INDEX_KEYS, _INDEX_KEYS)
        if index["format"] != FORMAT or isinstance(index["format"], bool):
            raise ConditionsError(f"{where}: format: {shown(index['format'])}, expected {FORMAT}")
        if index["chain"] != chain:
            raise ConditionsError(f"{where}: chain: conditions of {shown(index['chain'])}, expected those of {chain!r}")
        version = index["version"]
        if not isinstance(version, str) or not 0 < len(version) <= 100 or not version.isprintable():
            raise ConditionsError(f"{where}: version: {shown(version)}, expected a text of 1 to 100 characters")
        if not isinstance(index["runs"], list) or len(index["runs"]) > MAX_INTERVALS:
            raise ConditionsError(f"{where}: runs: expected [[runs]], at most {MAX_INTERVALS}")
        intervals = sorted(
            (reader.interval(f"{where}: runs[{i}]", entry) for i, entry in enumerate(index["runs"])),
            key=lambda interval: interval.first,
        )
        for before, after in pairwise(intervals):
            if after.first <= before.last:
                raise ConditionsError(f"{where}: {before.name} and {after.name} overlap")
        return cls(
            path=path,
            version=version,
            digest=reader.digest(),
            intervals=tuple(intervals),
            unused=reader.unused(),
        )

    def interval_of(self, run: int) -> Interval:
        """The interval of a run. Raises ConditionsError, which names the run, if there is none."""
        at = bisect_right(self.intervals, run, key=lambda interval: interval.first) - 1
        if at >= 0 and run <= self.intervals[at].last:
            return self.intervals[at]
        near = [
            *([f"the last one before it has {self.intervals[at].name}"] if at >= 0 else []),
            *([f"the next one has {self.intervals[at + 1].name}"] if at + 1 < len(self.intervals) else []),
        ]
        raise ConditionsError(
            f"run {run} has no conditions in {self.path} (version {self.version}): {'; '.join(near) or 'it is empty'}"
        )

    def values_of(self, run: int) -> Values:
        """The conditions of a run. Raises ConditionsError if there are none."""
        return self.interval_of(run).values


def faults_of_values(path: Path, known: Sequence[AnyCondition]) -> list[str]:
    """What is wrong with each value in the files that intervals use: file, key and fault.

    ConditionsFolder.load stops at the first fault. Faults of the index and unreadable files are left to it.
    """
    faults: list[str] = []
    try:
        reader = _Reader(path, known)
        runs = reader.toml(INDEX_FILE).get("runs")
        entries = [entry for entry in runs if isinstance(entry, dict)] if isinstance(runs, list) else []
        named = [name for entry in entries if isinstance(entry.get("files"), list) for name in entry["files"]]
        tables = {name: reader.toml(name) for name in named if isinstance(name, str) and _FILE_NAME.fullmatch(name)}
    except ConditionsError:
        return faults
    for name, table in tables.items():
        for key, value in table.items():
            try:
                check_values(parse_conditions({key: value}), known)
            except TriggerConfigError as error:
                faults.append(f"{path / name}: {str(error).removeprefix('conditions.')}")
    return faults


class _Reader:
    """Reads the files of a folder, each once."""

    def __init__(self, path: Path, known: Sequence[AnyCondition]) -> None:
        self._path = path
        self._known = known
        self._values: dict[str, Values] = {}
        self._hash = hashlib.sha256()
        self._nbytes = 0
        if not path.is_dir():
            raise ConditionsError(f"{path}: no such folder of conditions")

    def toml(self, name: str) -> dict[str, Any]:
        """The content of a file."""
        path = self._path / name
        try:
            # A pipe without a writer must not be awaited.
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ConditionsError(f"{path}: not a file")
                content = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise ConditionsError(f"{path}: cannot be read: {error.strerror}") from error
        if len(content) > MAX_FILE_BYTES:
            raise ConditionsError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        self._nbytes += len(content)
        if self._nbytes > MAX_BYTES:
            raise ConditionsError(f"{self._path}: its files have more than {MAX_BYTES} bytes")
        self._hash.update(f"{name}\0{len(content)}\0".encode() + content)
        try:
            return tomllib.loads(content.decode())
        except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            raise ConditionsError(f"{path}: not a TOML file: {error}") from error

    def interval(self, where: str, entry: object) -> Interval:
        """An entry of the index with the conditions of its files."""
        if not isinstance(entry, dict):
            raise ConditionsError(f"{where}: expected a table")
        _check_keys(where, entry, _INTERVAL_KEYS, {"first", "files"})
        first, last = _run(where, "first", entry["first"]), _run(where, "last", entry.get("last", MAX_RUN))
        if last < first:
            raise ConditionsError(f"{where}: last: run {last} is before the first, {first}")
        files = entry["files"]
        if not isinstance(files, list) or not files:
            raise ConditionsError(f"{where}: files: expected a list of files")
        values: dict[str, Value] = {}
        origin: dict[str, str] = {}
        for name in files:
            if not isinstance(name, str) or _FILE_NAME.fullmatch(name) is None or name == INDEX_FILE:
                raise ConditionsError(f"{where}: files: {shown(name)}, expected the name of a TOML file of the folder")
            for key, value in self._values_of(name):
                if key in values:
                    raise ConditionsError(f"{where}: {origin[key]} and {name} both set {key}")
                values[key], origin[key] = value, name
        missing = [condition.name for condition in self._known if condition.required and condition.name not in values]
        if missing:
            raise ConditionsError(f"{where}: {', '.join(missing)} missing in {', '.join(files)}")
        return Interval(first=first, last=last, files=tuple(files), values=tuple(sorted(values.items())))

    def digest(self) -> str:
        """Of the files read so far, in the order of the index."""
        return self._hash.hexdigest()

    def unused(self) -> tuple[str, ...]:
        """TOML files that were not read."""
        used = {INDEX_FILE, *self._values}
        return tuple(sorted(path.name for path in self._path.glob("*.toml") if path.name not in used))

    def _values_of(self, name: str) -> Values:
        if name not in self._values:
            try:
                values = parse_conditions(self.toml(name))
                check_values(values, self._known)
            except TriggerConfigError as error:
                if isinstance(error, ConditionsError):
                    raise
                raise ConditionsError(f"{self._path / name}: {str(error).removeprefix('conditions.')}") from error
            self._values[name] = values
        return self._values[name]


def _check_keys(where: object, table: Mapping[str, object], known: set[str], required: set[str]) -> None:
    if unknown := sorted(set(table) - known):
        raise ConditionsError(f"{where}: {shown(unknown[0])}: unknown key; there are {', '.join(sorted(known))}")
    if missing := sorted(required - set(table)):
        raise ConditionsError(f"{where}: {missing[0]}: missing")


def _run(where: str, key: str, value: object) -> int:
    if type(value) is not int or not 0 <= value <= MAX_RUN:
        raise ConditionsError(f"{where}: {key}: {shown(value)}, expected a run number, 0 to {MAX_RUN}")
    return value
