"""The memory socket of the node. Frames are read in the memory of the feeders, without a copy."""

import asyncio
import contextlib
import errno
import grp
import os
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.zmq_sockets import BUDGET_NS
from hltnode.daemon.configuration.input_sections import SharedMemorySection
from hltnode.daemon.monitoring.counters import SharedMemoryCounters
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.shared_memory.connection import EndedError, MemoryConnection
from hltnode.daemon.shared_memory.segment import SegmentRefusedError
from hltnode.protocol.transport.shared_memory import Attach, MemoryRefusal

# A feeder must hand over its memory within this time after it connects.
ATTACH_SECONDS = 5.0
# Largest number of connections that have not handed over memory yet.
MAX_UNATTACHED = 16
BACKLOG = 64
# Pause after the process ran out of descriptors.
ACCEPT_AGAIN_SECONDS = 1.0
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("shared_memory")


class MemoryReceiver:
    """The memory socket and the mapped segments. All calls come from the thread of the event loop.

    Args:
        path: path of the socket; a socket that a killed node left there is replaced.
        knows: whether a feeder of this name and session has sent its hello.
        take: reads frames of a range from an offset on, until a monotonic time (ns); returns the offset of the next
            frame. The memory may change during the call.
        begin_turn: called before each turn of reading.

    Raises:
        OSError: the socket cannot be bound, or the group does not exist.
    """

    def __init__(
        self,
        path: Path,
        settings: SharedMemorySection,
        knows: Callable[[str, str], bool],
        take: Callable[[memoryview, int, int], int],
        begin_turn: Callable[[], ReadingClock],
        counters: SharedMemoryCounters,
        clock_ns: Callable[[], int],
    ) -> None:
        self._path = path
        self._settings = settings
        self._knows = knows
        self._take = take
        self._begin_turn = begin_turn
        self._counters = counters
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._connections: dict[MemoryConnection, asyncio.TimerHandle | None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_scheduled = False
        self._retry: asyncio.TimerHandle | None = None
        self._socket = _bind(path, settings.group)
        self._inode = path.stat().st_ino

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to accept connections."""
        self._loop = loop
        self._listen()

    def _listen(self) -> None:
        assert self._loop is not None
        self._loop.add_reader(self._socket, self._accept)

    def read(self) -> bool:
        """Read available frames; False if some are left for the next turn of the loop."""
        if not self._connections:
            return True
        self._begin_turn()
        end_ns = time.monotonic_ns() + BUDGET_NS
        waiting = list(self._connections)
        while waiting:
            # Each connection gets an equal share of the time, so none delays the others.
            share_ns = (end_ns - time.monotonic_ns()) // len(waiting)
            waiting = [connection for connection in waiting if self._read_some(connection, share_ns)]
            if waiting and time.monotonic_ns() >= end_ns:
                self._schedule()
                return False
        return True

    def close(self) -> None:
        """End all connections; feeders send frames in flight again to the next session."""
        if self._socket.fileno() < 0:
            return
        if self._loop is not None:
            self._loop.remove_reader(self._socket)
        if self._retry is not None:
            self._retry.cancel()
        for connection in list(self._connections):
            self._forget(connection)
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            # Not if another node has replaced the socket since.
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()

    def _schedule(self) -> None:
        if self._loop is not None and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._scheduled_read)

    def _scheduled_read(self) -> None:
        self._is_scheduled = False
        self.read()

    # Connections

    def _accept(self) -> None:
        assert self._loop is not None
        try:
            peer, _ = self._socket.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                # The socket stays readable and would call this in every turn of the loop.
                self._loop.remove_reader(self._socket)
                self._retry = self._loop.call_later(ACCEPT_AGAIN_SECONDS, self._listen)
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                raise
            return
        peer.setblocking(False)
        try:
            connection = MemoryConnection(peer, self._admit, self._settings.max_segment_bytes)
        except OSError:
            peer.close()
            return
        if sum(each.owner is None for each in self._connections) >= MAX_UNATTACHED:
            self._refuse(connection, SegmentRefusedError(MemoryRefusal.TOO_MANY, "too many connections"))
            return
        self._connections[connection] = self._loop.call_later(ATTACH_SECONDS, self._too_late, connection)
        self._loop.add_reader(peer, self.read)

    def _admit(self, attach: Attach) -> None:
        if not self._knows(attach.feeder, attach.session):
            raise SegmentRefusedError(
                MemoryRefusal.UNKNOWN_FEEDER, f"feeder {attach.feeder} sent no hello in this session"
            )
        owners = [each for each in self._connections if each.owner is not None]
        for connection in owners:
            if connection.owner is not None and connection.owner.feeder == attach.feeder:
                # The feeder reconnected before the end of its old connection was seen.
                connection.left_on_purpose = True
                self._forget(connection)
                return
        if len(owners) >= self._settings.max_segments:
            raise SegmentRefusedError(MemoryRefusal.TOO_MANY, f"the limit of {len(owners)} segments is reached")

    def _too_late(self, connection: MemoryConnection) -> None:
        text = f"no memory arrived within {ATTACH_SECONDS:g} s"
        self._refuse(connection, SegmentRefusedError(MemoryRefusal.LATE, text))

    def _refuse(self, connection: MemoryConnection, refusal: SegmentRefusedError) -> None:
        self._counters.refused[refusal.reason] += 1
        if (left_out := self._limit.due(("refused", refusal.reason))) is not None:
            log.warning(
                "shared_memory_refused",
                reason=refusal.reason,
                text=str(refusal),
                pid=connection.pid,
                uid=connection.uid,
                left_out=left_out,
            )
        connection.refuse(refusal)
        connection.left_on_purpose = True
        self._forget(connection)

    def _forget(self, connection: MemoryConnection) -> None:
        timer = self._connections.pop(connection, None)
        if timer is not None:
            timer.cancel()
        if self._loop is not None:
            self._loop.remove_reader(connection.peer)
        if connection.owner is not None:
            self._counters.segments -= 1
            self._counters.bytes -= connection.nbytes
        connection.close()

    # Reading

    def _read_some(self, connection: MemoryConnection, within_ns: int) -> bool:
        """Read some frames of a connection; False if it has none."""
        if connection not in self._connections:
            return False
        try:
            if not connection.has_frames and not self._receive(connection):
                return False
            end_ns = time.monotonic_ns() + within_ns
            connection.read_range(lambda frames, at: self._take(frames, at, end_ns))
        except EndedError:
            self._ended(connection)
            return False
        except SegmentRefusedError as refusal:
            self._refuse(connection, refusal)
            return False
        return True

    def _receive(self, connection: MemoryConnection) -> bool:
        was_attached = connection.owner is not None
        before = connection.range_messages
        came = connection.receive()
        self._counters.range_messages += connection.range_messages - before
        if connection.owner is not None and not was_attached:
            self._attached(connection, connection.owner)
        return came

    def _attached(self, connection: MemoryConnection, owner: Attach) -> None:
        timer = self._connections[connection]
        if timer is not None:
            timer.cancel()
        self._connections[connection] = None
        self._counters.segments += 1
        self._counters.bytes += owner.nbytes
        if (left_out := self._limit.due(("attached", owner.feeder))) is not None:
            log.info(
                "shared_memory_attached",
                feeder=owner.feeder,
                bytes=owner.nbytes,
                pid=connection.pid,
                uid=connection.uid,
                left_out=left_out,
            )

    def _ended(self, connection: MemoryConnection) -> None:
        """The connection ended and all its ranges are read. Unmapping the segment here frees its memory."""
        owner = connection.owner
        if owner is not None and not connection.left_on_purpose:
            self._counters.left += 1
            log.warning(
                "shared_memory_left",
                feeder=owner.feeder,
                pid=connection.pid,
                bytes=owner.nbytes,
                text="the feeder ended without detaching its memory; the memory is released",
            )
        self._forget(connection)


def _bind(path: Path, group: str | None) -> socket.socket:
    """A listening socket, accessible to the user of this process and to `group`, if given."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        _remove_abandoned(path)
        bound.bind(str(path))
        # No client can connect before `listen`.
        path.chmod(0o600)
        if group is not None:
            try:
                gid = grp.getgrnam(group).gr_gid
            except KeyError:
                raise OSError(errno.EINVAL, f"shared_memory.group: this machine has no group {group!r}") from None
            os.chown(path, -1, gid)
            path.chmod(0o660)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"shared_memory.socket {path}: {error.strerror or error}") from error
    return bound


def _remove_abandoned(path: Path) -> None:
    """Remove the socket that a killed node left. Raises OSError if a node listens there or the file is not a socket."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise OSError(errno.EEXIST, "the file exists and is not a socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) as probe:
        refused = probe.connect_ex(str(path)) == errno.ECONNREFUSED
    if not refused:
        raise OSError(errno.EADDRINUSE, "another node listens there")
    path.unlink()
    log.warning("memory_socket_replaced", path=str(path), text="a killed node has left it")
