"""Threads that this process may usefully start: limited by its affinity and by its control groups."""

import os
from collections.abc import Iterator
from pathlib import Path

from hltnode.processing.framework.backends.host_memory import CGROUPS, PROC

# Threads of a node besides those that compute: event loop, ZeroMQ, copies, files, log, readers of sensors.
OTHER_THREADS = 32


def usable_processors(proc: Path = PROC, cgroups: Path = CGROUPS, affinity: int | None = None) -> int:
    """Number of threads that can compute at once, at least 1.

    The CPU quota of a control group counts in whole processors, rounded up: more threads would use up the quota early
    in each period and then stop together. The limit on processes leaves room for `OTHER_THREADS`.

    Args:
        affinity: processors of the affinity mask; that of this process if not given.
    """
    limits = [len(os.sched_getaffinity(0)) if affinity is None else affinity]
    for root, group in _groups(proc, cgroups):
        for folder in (group, *group.parents):
            if not folder.is_relative_to(root):
                break
            limits += _processors(folder)
            limits += _processes(folder)
    return max(1, min(limits))


def _groups(proc: Path, cgroups: Path) -> Iterator[tuple[Path, Path]]:
    """The root and the folder of this process in each hierarchy with limits on processors or processes."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for name in ("cpu", "pids") if controllers else ("",):
            if name in controllers.split(","):
                root = cgroups / name
                yield root, root / path.strip("/")


def _processors(folder: Path) -> list[int]:
    """The CPU quota of one group: version 2 (`max`: none), or version 1 (-1: none)."""
    words = _words(folder / "cpu.max")
    words = words or [*_words(folder / "cpu.cfs_quota_us"), *_words(folder / "cpu.cfs_period_us")]
    if len(words) != 2 or words[0] in ("max", "-1"):
        return []
    quota, period = map(int, words)
    return [-(-quota // period)]


def _processes(folder: Path) -> list[int]:
    most, now = _words(folder / "pids.max"), _words(folder / "pids.current")
    if not most or most[0] == "max":
        return []
    return [int(most[0]) - (int(now[0]) if now else 0) - OTHER_THREADS]


def _words(path: Path) -> list[str]:
    """The words of a file; none without it: the root has no limits, and a container may not see its group."""
    try:
        return path.read_text().split()
    except OSError:
        return []
