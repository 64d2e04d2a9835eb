"""The decisions of a supervisor in a file: after a kill and a restart, no event is stored twice.

Each decision is written to the file (SQLite) before any frame or message that depends on it is sent. A kill of the
process loses no decision. A power cut may lose the last decisions, because they are not forced to the disk.
"""

import contextlib
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from hltnode.daemon.common.log import get_logger
from hltnode.protocol.transport.mep_ranges import MepRanges

# "hlt1" in the header of the file (bytes 68 to 71, big-endian), to recognise files of this kind.
_APPLICATION_ID = 0x686C7431
_MAGIC = b"SQLite format 3\0"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS feed (run INTEGER NOT NULL, nodes TEXT NOT NULL, session TEXT NOT NULL,
                                 next_mep INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS input (name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS assigned (mep INTEGER PRIMARY KEY, node INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS revoked (mep INTEGER NOT NULL, node INTEGER NOT NULL, PRIMARY KEY (mep, node)) WITHOUT ROWID;
"""

log = get_logger("assignment_memory")


class AssignmentMemoryError(ValueError):
    """The file belongs to another feed, is in use by another process, or cannot be written."""


class AssignmentMemory:
    """The assignments of one run, by index of the node.

    Without a path, they are lost when the process ends. Raises AssignmentMemoryError; a damaged file is moved aside.
    """

    def __init__(self, path: Path | None, *, run: int, nodes: Sequence[str], input_name: str = "") -> None:
        self.path = path
        self.session = secrets.token_hex(8)
        """Session of the supervisor at the nodes; the same after a restart, so it may revoke MEPs that it sent
        before."""
        self.next_mep = 0
        """Every MEP below this id is assigned or acknowledged."""
        try:
            self._database = self._open()
            self._begin(run, " ".join(nodes), input_name)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise AssignmentMemoryError(f"{path}: another replay process uses this file") from error
            raise AssignmentMemoryError(f"{path}: {error}") from error

    def _open(self) -> sqlite3.Connection:
        if self.path is None:
            return self._connect(":memory:")
        self._refuse_another_file(self.path)
        try:
            return self._connect(str(self.path))
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            aside = self.path.with_name(f"{self.path.name}.damaged-{secrets.token_hex(4)}")
            log.warning("assignments_damaged", path=str(self.path), moved_to=str(aside), error=str(error))
            for suffix in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    Path(f"{self.path}{suffix}").rename(f"{aside}{suffix}")
            return self._connect(str(self.path))

    @staticmethod
    def _refuse_another_file(path: Path) -> None:
        try:
            with path.open("rb") as file:
                header = file.read(72)
        except FileNotFoundError:
            return
        except OSError as error:
            raise AssignmentMemoryError(f"{path}: {error.strerror}") from error
        if header and (not header.startswith(_MAGIC) or header[68:] != _APPLICATION_ID.to_bytes(4, "big")):
            raise AssignmentMemoryError(f"{path}: this file was not written by hltnode replay; it is left unchanged")

    @staticmethod
    def _connect(name: str) -> sqlite3.Connection:
        database = sqlite3.connect(name, timeout=0, isolation_level=None)
        try:
            # Before the journal mode is set, so that it is written to the file itself.
            database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            for line in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = OFF"):
                database.execute(f"PRAGMA {line}")
            database.executescript(_SCHEMA)
            [report] = database.execute("PRAGMA quick_check(1)").fetchone()
            if report != "ok":
                raise sqlite3.DatabaseError(report)
        except BaseException:
            database.close()
            raise
        return database

    def _begin(self, run: int, nodes: str, input_name: str) -> None:
        known = self._database.execute("SELECT name FROM input").fetchone()
        row = self._database.execute("SELECT run, nodes, session, next_mep FROM feed").fetchone()
        if row is None:
            self._database.execute("INSERT INTO feed VALUES (?, ?, ?, 0)", (run, nodes, self.session))
            self._database.execute("INSERT INTO input VALUES (?)", (input_name,))
            return
        if known is not None and known[0] != input_name:
            self._database.close()
            raise AssignmentMemoryError(
                f"{self.path}: belongs to an unfinished replay of another input as run {row[0]}: replay that input to "
                "continue it, give this one another run number (--run), or close the run on all nodes (hltnode ctl "
                "close; hltnode ctl start --run accepts it again) and remove this file"
            )
        if row[:2] != (run, nodes):
            self._database.close()
            raise AssignmentMemoryError(
                f"{self.path}: belongs to run {row[0]} and nodes {row[1]}, expected run {run} and nodes {nodes}"
            )
        self.session, self.next_mep = row[2], row[3]

    @property
    def continues(self) -> bool:
        """True if an earlier process left decisions."""
        return self.next_mep > 0

    # Reading

    def assigned(self) -> dict[int, int]:
        """Node of each assigned MEP that is not acknowledged, in order of MEP id."""
        return dict(self._database.execute("SELECT mep, node FROM assigned ORDER BY mep"))

    def revoked(self, node: int) -> MepRanges:
        """MEPs that were assigned to this node first and to another node later."""
        rows = self._database.execute("SELECT mep FROM revoked WHERE node = ? ORDER BY mep", (node,))
        return MepRanges((mep, mep) for (mep,) in rows)

    # Writing

    @contextlib.contextmanager
    def _at_once(self) -> Iterator[sqlite3.Connection]:
        """One transaction. After AssignmentMemoryError, its decisions must not be carried out."""
        try:
            self._database.execute("BEGIN")
            yield self._database
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise AssignmentMemoryError(f"{self.path}: {error}") from error

    def assign(self, mep: int, node: int) -> None:
        """Record the assignment of a new MEP."""
        with self._at_once() as database:
            database.execute("INSERT OR REPLACE INTO assigned VALUES (?, ?)", (mep, node))
            self._pass(mep)

    def skip(self, mep: int) -> None:
        """Record that a MEP was acknowledged before its assignment."""
        with self._at_once():
            self._pass(mep)

    def _pass(self, mep: int) -> None:
        self.next_mep = max(self.next_mep, mep + 1)
        self._database.execute("UPDATE feed SET next_mep = ?", (self.next_mep,))

    def move(self, mep: int, from_node: int, to_node: int) -> None:
        """Record that a MEP is assigned to another node."""
        with self._at_once() as database:
            database.execute("UPDATE assigned SET node = ? WHERE mep = ?", (to_node, mep))
            database.execute("INSERT OR REPLACE INTO revoked VALUES (?, ?)", (mep, from_node))
            database.execute("DELETE FROM revoked WHERE mep = ? AND node = ?", (mep, to_node))

    def acknowledged(self, mep: int) -> None:
        """Record that a MEP is acknowledged: it stays at its node."""
        with self._at_once() as database:
            database.execute("DELETE FROM assigned WHERE mep = ?", (mep,))

    def confirmed_below(self, mep: int) -> None:
        """Forget revocations below this id: no node will be asked for them again."""
        with self._at_once() as database:
            database.execute("DELETE FROM revoked WHERE mep < ?", (mep,))

    def finish(self) -> None:
        """Delete the content: all nodes have confirmed all MEPs."""
        self.close()
        if self.path is not None:
            for suffix in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    Path(f"{self.path}{suffix}").unlink()

    def close(self) -> None:
        """Close the file."""
        self._database.close()
