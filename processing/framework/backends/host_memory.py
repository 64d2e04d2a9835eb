"""Memory that this process may still allocate, limited by the machine and by its control groups."""

from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class _Hierarchy:
    """File names of one version of control groups."""

    controllers: str
    """Name of the hierarchy in /proc/self/cgroup."""
    folder: str
    limit: str
    usage: str
    reclaimable: str


_HIERARCHIES = (
    _Hierarchy("", "", "memory.max", "memory.current", "inactive_file"),
    _Hierarchy("memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_bytes(proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """Bytes that can be allocated without swapping and without reaching the limit of a control group.

    Raises OSError or ValueError if /proc is not that of Linux.
    """
    left = [_machine(proc)]
    for line in (proc / "self" / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for hierarchy in _HIERARCHIES:
            if hierarchy.controllers == controllers:
                left += _limits(cgroups / hierarchy.folder, path, hierarchy)
    return min(left)


def _machine(proc: Path) -> int:
    fields = _table(proc / "meminfo")
    if "MemAvailable:" not in fields:
        raise ValueError(f"{proc / 'meminfo'} does not give the available memory")
    return fields["MemAvailable:"] * 1024


def _limits(root: Path, path: str, hierarchy: _Hierarchy) -> list[int]:
    """The remaining memory of each group with a limit, from the group of this process up to the root."""
    left = []
    group = root / path.strip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(root):
            break
        try:
            limit = (folder / hierarchy.limit).read_text().strip()
            used = int((folder / hierarchy.usage).read_text())
            reclaimable = _table(folder / "memory.stat").get(hierarchy.reclaimable, 0)
        except FileNotFoundError:  # the root has no limit, and a container may not see its own group
            continue
        if limit != "max":
            left.append(max(0, int(limit) - used + reclaimable))
    return left


def _table(path: Path) -> dict[str, int]:
    """Names and numbers from lines; units are ignored."""
    rows = (line.split() for line in path.read_text().splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) >= 2}
