"""File descriptors: how many peers may take, so that files and devices always find one."""

import resource
from dataclasses import replace

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.security.connection_table import ConnectionLimits

# Of libzmq for a connection, and of its `TcpConnection`.
PER_CONNECTION = 2
# For files, libraries, devices, HTTP, and connections that libzmq accepts before they are refused.
RESERVE = 512
# Fewer connections than this per socket are no node.
FEWEST = 16

log = get_logger("descriptors")


class DescriptorLimitError(OSError):
    """The process may not open as many files as the node needs."""


def raise_limit() -> int:
    """Let this process open as many files as the system allows it; returns that number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def limits_that_fit(limits: ConnectionLimits, n_sockets: int, descriptors: int) -> ConnectionLimits:
    """The limits, lowered if peers at all sockets could otherwise take every descriptor, with a warning.

    Raises:
        DescriptorLimitError: not even a small node has room.
    """
    room = (descriptors - RESERVE) // (PER_CONNECTION * n_sockets)
    if room >= limits.connections:
        return limits
    needed = PER_CONNECTION * n_sockets * limits.connections + RESERVE
    if room < FEWEST:
        raise DescriptorLimitError(
            f"at most {descriptors} open files are allowed, expected {needed}: raise LimitNOFILE= or ulimit -n, "
            "or lower limits.connections"
        )
    log.warning(
        "connections_limited_by_descriptors",
        configured=limits.connections,
        in_force=room,
        open_files=descriptors,
        expected_open_files=needed,
        advice="raise LimitNOFILE= or ulimit -n, or lower limits.connections",
    )
    return replace(limits, connections=room)
