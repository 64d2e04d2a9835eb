"""A simulated power cut: the files of a killed node lose data that the node had not forced to the disk.

Any part of a file behind its last forced byte may be lost or read as zeros. A directory may have its names as of its
last fsync. Data that were not forced may also survive: each cut draws from its seed.
"""

import json
import os
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.recorder import BOOT, FORCED_LOG, LINKS
from tests.soak.records import Event, events_of_file


@dataclass(slots=True)
class Forced:
    """Safe data: bytes of each file by inode, and names of each directory."""

    sizes: dict[int, int] = field(default_factory=dict)
    names: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(slots=True)
class CutReport:
    """Losses of a cut."""

    bytes_lost: int = 0
    names_undone: int = 0
    open_events: set[Event] = field(default_factory=set)
    """Events in files without final name on the disk: with `fsync = "file"` they may be lost."""
    unnamed: set[str] = field(default_factory=set)
    """Lost final names."""


def read_forced(root: Path) -> Forced:
    """The record of a node over all sessions."""
    forced = Forced()
    log = root / FORCED_LOG
    if not log.exists():
        return forced
    for row in log.read_text().splitlines():
        try:
            record = json.loads(row)
        except json.JSONDecodeError:
            continue  # empty, or incomplete because of a full disk: the node got the error
        if "file" in record:
            forced.sizes[record["file"]] = record["size"]
        else:
            forced.names[record["directory"]] = record["names"]
    return forced


def cut_power(root: Path, collected: Iterable[str], rng: random.Random) -> CutReport:
    """Remove data from `root/output` as a power cut may do; the node must not run.

    collected: names that a collector has taken away; a cut does not revert this.
    """
    (root / BOOT).write_text(f"{rng.getrandbits(64):016x}\n")
    forced = read_forced(root)
    output, report = root / "output", CutReport()
    directories = [output, *sorted(path for path in output.rglob("*") if path.is_dir())]
    for directory in directories:
        safe = forced.names.get(str(directory.relative_to(output)), {})
        _note_open_events(directory, safe, report)
        if rng.random() < 0.5:
            _undo_names(directory, safe, root / LINKS, set(collected), report)
        for path in sorted(path for path in directory.iterdir() if path.is_file()):
            _cut_file(path, forced.sizes.get(path.stat().st_ino, 0), rng, report)
    return report


def _note_open_events(directory: Path, safe: dict[str, int], report: CutReport) -> None:
    for path in directory.iterdir():
        if path.is_file() and ".mdf" in path.name and (path.suffix != ".mdf" or path.name not in safe):
            report.open_events |= events_of_file(path)


def _undo_names(directory: Path, safe: dict[str, int], links: Path, collected: set[str], report: CutReport) -> None:
    now = {path.name: path.stat().st_ino for path in directory.iterdir() if path.is_file()}
    for name, inode in now.items():
        if safe.get(name) != inode:
            (directory / name).unlink()
            report.names_undone += 1
            if name.endswith(".mdf"):
                report.unnamed.add(name)
    for name, inode in safe.items():
        # The rename to its final name is reverted only if no collector has taken the file under this name.
        if now.get(name) != inode and not {name, name.removesuffix(".part")} & collected:
            os.link(links / str(inode), directory / name)
            report.names_undone += 1


def _cut_file(path: Path, forced: int, rng: random.Random, report: CutReport) -> None:
    size = path.stat().st_size
    if size <= forced:
        return
    end = forced if rng.random() < 0.3 else rng.randint(forced, size)
    report.bytes_lost += size - end
    with path.open("r+b") as file:
        file.truncate(end)
        if rng.random() < 0.3:
            # The length had reached the disk, but the data had not.
            file.truncate(size)
