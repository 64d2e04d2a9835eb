"""The identity of a file system, equal for all nodes that write to it: on a machine, in containers, by network."""

import os
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
# Equal in all containers of a machine, where host names differ.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
BOOT_DIGITS = 8


def filesystem_identity(directory: Path, mounts: Path = MOUNTS, boot_id: Path = BOOT_ID) -> str:
    """The device of the file system of a directory, such as `/dev/md0@3f2a77c1`; the digits stand for the machine.

    A network file system has the name of its server (`farm-nfs:/events`), without a machine. If the kernel does not
    tell, the directory stands for the device. May wait for a network file system that hangs.
    """
    try:
        machine = boot_id.read_text()[:BOOT_DIGITS]
        real = Path(os.path.realpath(directory))
        device = _device(real, mounts.read_text())
    except OSError:
        return str(directory)
    if device is None:
        return f"{real}@{machine}"
    return device if ":" in device or device.startswith("//") else f"{device}@{machine}"


def _device(directory: Path, mounts: str) -> str | None:
    """The source of the innermost mount that holds the directory; number and type if the source is not a device."""
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        # proc(5): id, parent, major:minor, root, mount point, options, optional fields, "-", type, source, options
        mount, _, system = line.partition(" - ")
        number, _, point = mount.split(" ")[2:5]
        kind, source = system.split(" ")[:2]
        place = Path(_unescaped(point))
        # A later mount on the same place hides the earlier one.
        if directory.is_relative_to(place) and (found is None or len(place.parts) >= found[0]):
            is_known = source.startswith("/") or ":" in source
            found = len(place.parts), _unescaped(source) if is_known else f"{kind} {number.replace(':', '.')}"
    return None if found is None else found[1]


def _unescaped(text: str) -> str:
    """The kernel writes blanks, tabs, line ends and backslashes as octal numbers."""
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape") if "\\" in text else text
