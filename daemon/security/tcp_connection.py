"""A second descriptor of an accepted TCP connection: address of the peer, bytes read, and a way to end it."""

from __future__ import annotations

import fcntl
import ipaddress
import os
import socket
import struct
import termios

from hltnode.daemon.security.listener_filter import remove_filter

# Offset of tcpi_bytes_received in struct tcp_info of linux/tcp.h, and the size of the part that is read.
_BYTES_RECEIVED = 128
_INFO_BYTES = 136
_DISCARDED = bytearray(1 << 20)
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class TcpConnection:
    """A second descriptor of a connection that libzmq has accepted.

    It refers to the same connection even after the first descriptor was closed and its number used again.
    """

    def __init__(self, descriptor: int, local_port: int | None) -> None:
        """Raises OSError if the descriptor is no connection to this port, or not any more."""
        second = os.dup(descriptor)
        try:
            self._socket = socket.socket(fileno=second)
        except OSError:
            # The number already belongs to a file, and `socket` has not taken the second descriptor.
            os.close(second)
            raise
        try:
            self._is_tcp = self._socket.family in (socket.AF_INET, socket.AF_INET6)
            if self._is_tcp and self._socket.getsockname()[1] != local_port:
                raise OSError("the descriptor belongs to another connection")
            self.address = address_group(self._socket.getpeername()[0]) if self._is_tcp else ""
        except OSError:
            self._socket.close()
            raise

    def remove_filter(self) -> None:
        """Remove the packet filter that the connection has from its listener."""
        remove_filter(self._socket)

    def fileno(self) -> int:
        """The second descriptor, for polling."""
        return self._socket.fileno()

    def bytes_read(self) -> int:
        """Bytes that libzmq has read; 0 for a local socket, which does not count them. Raises OSError."""
        if not self._is_tcp:
            return 0
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
        if len(info) < _INFO_BYTES:
            return 0
        received: int = struct.unpack_from("=Q", info, _BYTES_RECEIVED)[0]
        waiting: int = struct.unpack("i", fcntl.ioctl(self._socket, termios.FIONREAD, bytes(4)))[0]
        return max(0, received - waiting)

    def cut(self) -> None:
        """End the connection: libzmq then reads the end of the stream and frees its memory."""
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
            self._socket.shutdown(socket.SHUT_RDWR)
            # The kernel may hold megabytes that libzmq would still read and decode.
            while self._socket.recv_into(_DISCARDED, 0, socket.MSG_TRUNC | socket.MSG_DONTWAIT):
                pass
        except OSError:
            return  # the peer has ended it, or no bytes are left

    def close(self) -> None:
        """Close this descriptor; the connection itself belongs to libzmq."""
        self._socket.close()


def address_group(host: str) -> str:
    """The unit of limits per address: an IPv4 address, or the /64 network of an IPv6 address, given to one machine."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        if not address.is_loopback:
            return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)


def is_local_socket(address: str) -> bool:
    """Whether an address is that of a local socket, whose peers have none."""
    return not address


def is_this_machine(address: str) -> bool:
    """Whether an address from `address_group` is the loopback or a local socket."""
    return is_local_socket(address) or address == "::1" or address.startswith("127.")
