"""File descriptors: a limit on those of peers, so that files and devices always get one."""

import resource
from dataclasses import replace

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.security.connection_table import ConnectionLimits

# One of libzmq, one of `TcpConnection`.
PER_CONNECTION = 2
# For files, libraries, devices, HTTP, and connections that libzmq accepts before the limiter refuses them.
RESERVE = 512
# A node with fewer connections per socket is not usable.
FEWEST = 16

log = get_logger("descriptors")


class DescriptorLimitError(OSError):
    """The limit on open files is lower than the node needs."""


def raise_limit() -> int:
    """Raise the soft limit on open files to the hard limit; returns that limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def limits_that_fit(limits: ConnectionLimits, n_sockets: int, descriptors: int) -> ConnectionLimits:
    """The limits, lowered with a warning if the peers of all sockets could take every descriptor.

    Raises:
        DescriptorLimitError: the descriptors do not suffice even for a small node.
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
