"""Files of recorded MEPs: one series for each run. A file has a temporary name until it is complete."""

from pathlib import Path
from typing import BinaryIO

from hltnode.daemon.recorder.mep_assembly import RecordedMep

PASSING_SUFFIX = ".part"


class MepFiles:
    """Writes MEPs to FOLDER/run_RUN_NUMBER.mep. Raises OSError; FileExistsError instead of overwriting a file."""

    def __init__(self, folder: Path, max_file_bytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._max_file_bytes = max_file_bytes
        self._run = -1
        self._number = 0
        self._n_bytes = 0
        self._file: BinaryIO | None = None
        self._path = folder
        self.finished: list[Path] = []
        """The complete files."""

    def write(self, mep: RecordedMep) -> None:
        """Append a MEP to the file of its run."""
        if mep.run != self._run:
            self.close()
            self._run, self._number = mep.run, 0
        elif self._file is not None and self._n_bytes + len(mep.content) > self._max_file_bytes:
            self.close()
        if self._file is None:
            self._open()
        assert self._file is not None
        self._file.write(mep.content)
        self._n_bytes += len(mep.content)

    def close(self) -> None:
        """Close the current file and give it its final name."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._path.with_name(self._path.name + PASSING_SUFFIX).rename(self._path)
            self.finished.append(self._path)

    def _open(self) -> None:
        self._number += 1
        self._path = self._folder / f"run_{self._run:010d}_{self._number:05d}.mep"
        if self._path.exists():
            raise FileExistsError(f"{self._path}: exists; a recording never overwrites a file")
        self._file = self._path.with_name(self._path.name + PASSING_SUFFIX).open("xb")
        self._n_bytes = 0
