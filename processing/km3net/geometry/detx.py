"""Detector files of KM3NeT, `detx` of versions 1 to 5 (docs/formats/km3net-detx.md)."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.km3net.geometry.pmt_table import NO_LINE, PMT, Detector
from hltnode.protocol.km3net.hit_banks import MAX_PMTS

VERSIONS = range(1, 6)
_MODULE_FIELDS = {1: 4, 2: 4, 3: 4, 4: 12, 5: 13}
"""Fields of the line of a module: number, line, floor, then position, quaternion and t0 from version 4 on, status in
version 5, and at the end the number of PMTs."""
NO_FLOOR = -1
"""Floor of the modules of a line whose floors a file does not give, as in files of simulated detectors."""
_PMT_FIELDS = {1: 8, 2: 8, 3: 9, 4: 9, 5: 9}
"""Fields of the line of a PMT: number, position, direction, t0, and its status from version 3 on."""


def read_detx(path: Path) -> Detector:
    """The PMTs in the order of the file; the number of a PMT in hits is its place there.

    Lines get the numbers 0, 1 ... in the order of their numbers in the file. Modules that have floor 0 (base modules)
    have no PMTs. The PMTs of a module are adjacent: modules of the same line and floor are its groups 0, 1 ... Modules
    of a line that all have floor -1 get the floors 1, 2 ... from the lowest one on.

    Raises ValueError, which names file and line.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    lines = [
        (number, line.split()) for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]  # fmt: skip
    return _detector(path, iter(lines))


def write_detx(detector: Detector, path: Path) -> None:
    """Write a file of version 3. Adjacent PMTs become a module; modules and PMTs count from 1."""
    pmts, positions = detector.pmts, detector.positions
    place = detector.places
    starts = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    lines = ["1 v3", "0.0 9999999999.0", "UTM WGS84 33N 587600.0 4016800.0 -3450.0", str(len(starts))]
    for module, (begin, end) in enumerate(pairwise([*starts.tolist(), len(pmts)]), 1):
        lines.append(f"{module} {pmts['line'][begin] + 1} {pmts['floor'][begin] + 1} {end - begin}")
        for i in range(begin, end):
            numbers = " ".join(f"{x:.4f}" for x in (*positions[i], *detector.directions[i], detector.t0[i]))
            lines.append(f"{i + 1} {numbers} 0")
    path.write_text("\n".join(lines) + "\n")


def _detector(path: Path, lines: Iterator[tuple[int, list[str]]]) -> Detector:
    version, n_modules = _header(path, lines)
    rows: list[list[float]] = []
    of_module: list[tuple[int, int, int, int]] = []
    groups: Counter[tuple[int, int]] = Counter()
    for _ in range(n_modules):
        at, words = _next(path, lines, "a module", _MODULE_FIELDS[version])
        line, floor, n = (_whole(path, at, words[i]) for i in (1, 2, -1))
        if (
            not (0 <= line < NO_LINE and NO_FLOOR <= floor < 256 and 0 <= n <= MAX_PMTS - len(rows))
            or groups[line, floor] > 255
            or (floor == NO_FLOOR and n == 0)
        ):
            raise ValueError(f"{path}, line {at}: line {line}, floor {floor}, {n} PMTs: out of range")
        for _ in range(n):
            at, words = _next(path, lines, "a PMT", _PMT_FIELDS[version])
            rows.append([_number(path, at, word) for word in words[1:8]])
        of_module.append((line, floor, groups[line, floor], n))
        groups[line, floor] += 1
    if (rest := next(lines, None)) is not None:
        raise ValueError(f"{path}, line {rest[0]}: expected the end of the file after {n_modules} modules")
    numbers = np.array(rows, np.float64).reshape(-1, 7)
    lines_of, floors_of, groups_of, counts = np.array(of_module, np.int64).reshape(-1, 4).T
    if (floors_of == NO_FLOOR).any():
        floors_of, groups_of = _floors_by_height(path, lines_of, floors_of, groups_of, counts, numbers[:, 2])
    pmts = np.zeros(len(numbers), PMT.dtype)
    pmts["x"], pmts["y"], pmts["z"] = numbers[:, :3].T
    pmts["line"] = np.repeat(np.unique(lines_of, return_inverse=True)[1].reshape(-1), counts)
    pmts["floor"], pmts["group"] = np.repeat(floors_of, counts), np.repeat(groups_of, counts)
    return Detector(pmts, numbers[:, 3:6].astype(np.float32), numbers[:, 6])


def _floors_by_height(
    path: Path,
    lines: NDArray[np.int64],
    floors: NDArray[np.int64],
    groups: NDArray[np.int64],
    counts: NDArray[np.int64],
    heights: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Floors and groups of modules, with the floors that the file does not give. heights: z of all PMTs, m."""
    floors, groups = floors.copy(), groups.copy()
    of_modules = np.zeros(len(counts))
    with_pmts = counts > 0
    starts = (np.cumsum(counts) - counts)[with_pmts]
    of_modules[with_pmts] = np.add.reduceat(heights, starts) / counts[with_pmts]
    for line in np.unique(lines[floors == NO_FLOOR]):
        of_line = np.flatnonzero(lines == line)
        if (floors[of_line] != NO_FLOOR).any():
            raise ValueError(f"{path}: line {line} has modules with floor -1 and others; expected -1 for all or none")
        if len(of_line) > 255:
            raise ValueError(f"{path}: line {line} has {len(of_line)} modules with floor -1, at most 255 are numbered")
        floors[of_line[np.argsort(of_modules[of_line], kind="stable")]] = np.arange(1, len(of_line) + 1)
        groups[of_line] = 0
    return floors, groups


def _header(path: Path, lines: Iterator[tuple[int, list[str]]]) -> tuple[int, int]:
    """Version and number of modules. Version 1 has both numbers in one line, without the letter."""
    at, words = _next(path, lines, "the detector", 2)
    if words[1][:1] not in "vV":
        return 1, _whole(path, at, words[1])
    version = _whole(path, at, words[1][1:])
    if version not in VERSIONS:
        raise ValueError(f"{path}: version {version} of detx, 1 to 5 are read")
    _next(path, lines, "the time of validity", 2)
    _next(path, lines, "the UTM position", 6)
    at, words = _next(path, lines, "the number of modules", 1)
    return version, _whole(path, at, words[0])


def _next(path: Path, lines: Iterator[tuple[int, list[str]]], what: str, n: int) -> tuple[int, list[str]]:
    at, words = next(lines, (0, []))
    if not words:
        raise ValueError(f"{path}: the file ends, expected the line of {what}")
    if len(words) != n:
        raise ValueError(f"{path}, line {at}: {len(words)} fields, expected {n} of {what}")
    return at, words


def _whole(path: Path, at: int, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"{path}, line {at}: {word!r} is not a whole number") from None


def _number(path: Path, at: int, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(f"{path}, line {at}: {word!r} is not a number")
    return value
