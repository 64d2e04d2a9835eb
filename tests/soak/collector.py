"""A collector: takes `*.mdf` away at random times, and checks that a file with that name never changes."""

import os
import random
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

PAUSE_SECONDS = (0.1, 2.0)
# Fraction of the finished files that is taken at a time.
TAKEN = 0.6


@dataclass(slots=True)
class _Seen:
    inode: int
    size: int
    digest: bytes


class Collector:
    """Moves finished files from the output directories, by name of their node, to `<directory>/<node>`.

    `start` and `stop` run it in a thread; `check` compares all recorded files at the end.
    """

    def __init__(self, directory: Path, outputs: Mapping[str, Path], seed: int) -> None:
        self.problems: list[str] = []
        self.taken: dict[str, set[str]] = {node: set() for node in outputs}
        """Names of the taken files, by node."""
        self.times = 0
        self.taken_again = 0
        """Files that came back unchanged after a power cut had reverted their final name."""
        self._outputs = dict(outputs)
        self._places = {node: directory / node for node in outputs}
        for place in self._places.values():
            place.mkdir(parents=True)
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._random = random.Random(f"{seed}/collector")
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector")

    def start(self) -> None:
        """Start collecting."""
        self._thread.start()

    def stop(self) -> None:
        """Stop collecting."""
        self._ending.set()
        self._thread.join()

    @property
    def lock(self) -> threading.Lock:
        """Held while files are read or taken: a power cut or a move of the directory must wait."""
        return self._lock

    def forget(self, node: str, names: set[str]) -> None:
        """Record files that a power cut removed, or whose final name it reverted."""
        for name in names:
            self._seen.pop((node, name), None)

    def place(self, node: str) -> Path:
        """The destination of the files of a node."""
        return self._places[node]

    def collect(self, part: float) -> None:
        """Read all finished files and take some of them."""
        with self._lock:
            for node, output in self._outputs.items():
                if output.is_dir():
                    self._look(node, output)
                    self._take(node, output, part)

    def check(self) -> list[str]:
        """Check the taken files a last time; returns the problems."""
        for (node, name), seen in self._seen.items():
            place = self._places[node] if name in self.taken[node] else self._outputs[node]
            path = place / name
            if not path.exists():
                self.problems.append(f"node {node}: {name} was finished and is gone")
            elif _digest(path) != seen.digest:
                self.problems.append(f"node {node}: {name} has changed after it had its final name")
        return self.problems

    def _run(self) -> None:
        while not self._ending.wait(self._random.uniform(*PAUSE_SECONDS)):
            self.times += 1
            try:
                self.collect(TAKEN)
            except FileNotFoundError as error:
                self.problems.append(f"a finished file was removed while it was collected: {error}")

    def _look(self, node: str, output: Path) -> None:
        for path in sorted(output.glob("*.mdf")):
            status = path.stat()
            seen = self._seen.get((node, path.name))
            if seen is None:
                self._seen[node, path.name] = _Seen(status.st_ino, status.st_size, _digest(path))
            elif path.name not in self.taken[node] and (seen.inode, seen.size) != (status.st_ino, status.st_size):
                self.problems.append(f"node {node}: {path.name} was written again after it had its final name")
                self._seen[node, path.name] = _Seen(status.st_ino, status.st_size, _digest(path))

    def _take(self, node: str, output: Path, part: float) -> None:
        for path in sorted(output.glob("*.mdf")):
            if self._random.random() >= part:
                continue
            if path.name in self.taken[node]:
                if _digest(path) == self._seen[node, path.name].digest:
                    self.taken_again += 1
                    path.unlink()
                else:
                    self.problems.append(f"node {node}: {path.name} was taken and is there again with other bytes")
                    os.rename(path, path.with_suffix(".mdf.again"))
                continue
            self.taken[node].add(path.name)
            # A move by name keeps the inode, so later writes to the file are detected.
            shutil.move(path, self._places[node] / path.name)


def _digest(path: Path) -> bytes:
    return blake2b(path.read_bytes(), digest_size=16).digest()
