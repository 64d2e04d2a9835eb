"""The finished runs of an interrupted replay in a file: started again, the replay does not send them a second time.

A node forgets a run that is over, so it would store the run again. A run is noted before the nodes are told that they
may forget it, and once more when they know it.
"""

import os
import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from hltnode.client.clock import SYSTEM_CLOCK, Clock
from hltnode.daemon.replay.input_files import FeedError

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run whose MEPs are all acknowledged."""

    run: int
    input: str
    """Identifies the events of the run and their packing."""
    last_mep: int | None
    complete: bool
    """True if the nodes refused no fragment."""
    confirmed: bool
    """True if the nodes know that every MEP is acknowledged, and may have forgotten the run."""
    time: str


@dataclass(frozen=True, slots=True)
class _Content:
    version: int
    runs: list[FinishedRun]


class FinishedRuns:
    """The finished runs of one feeder of a replay, in a small JSON file, which is replaced as a whole.

    Raises FeedError for a file that cannot be read, and leaves it unchanged: without it, runs would be stored twice.
    """

    def __init__(self, path: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = path
        self._clock = clock
        self._runs = {(each.run, each.input): each for each in self._read()}

    def _read(self) -> list[FinishedRun]:
        try:
            content = msgspec.json.decode(self.path.read_bytes(), type=_Content)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FeedError(f"{self.path}: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise FeedError(
                f"{self.path}: is no readable record of finished runs ({error}): move it away to send all runs again"
            ) from error
        if content.version != _VERSION:
            raise FeedError(f"{self.path}: version {_VERSION} expected, {content.version} found")
        return content.runs

    def find(self, run: int, input_name: str) -> FinishedRun | None:
        """The record of a run with this input; None if it is not finished."""
        return self._runs.get((run, input_name))

    def stored(self, run: int, input_name: str, last_mep: int | None, *, complete: bool) -> None:
        """Note that all MEPs of a run are acknowledged. Raises FeedError."""
        time = datetime.fromtimestamp(self._clock.wall_ns() * 1e-9, UTC).isoformat(timespec="seconds")
        self._runs[run, input_name] = FinishedRun(
            run=run, input=input_name, last_mep=last_mep, complete=complete, confirmed=False, time=time
        )
        self._write()

    def confirmed(self, run: int, input_name: str) -> None:
        """Note that the nodes know the end of a stored run. Raises FeedError."""
        self._runs[run, input_name] = replace(self._runs[run, input_name], confirmed=True)
        self._write()

    def forget(self, runs: list[tuple[int, str]]) -> None:
        """Forget the runs of a replay that has ended; deletes the file with the last run. Raises FeedError."""
        for key in runs:
            self._runs.pop(key, None)
        if self._runs:
            self._write()
            return
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise FeedError(f"{self.path}: {error.strerror}") from error

    def _write(self) -> None:
        content = msgspec.json.format(msgspec.json.encode(_Content(_VERSION, list(self._runs.values()))))
        try:
            self._replace(content)
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise FeedError(
                f"{self.path}: {error.strerror}; give --memory FILE in a folder that is writable"
            ) from error

    def _replace(self, content: bytes) -> None:
        """Replace the file by a new one with this content. A failed write leaves only the old file."""
        with tempfile.NamedTemporaryFile(dir=self.path.parent, prefix=f"{self.path.name}.", delete=False) as file:
            written = Path(file.name)
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                written.replace(self.path)
            except BaseException:
                written.unlink(missing_ok=True)
                raise
