"""Has the kernel drop the packets of refused addresses at a listening socket, before a connection exists.

libzmq accepts every connection, and reads what it sends before the node can end it. A socket filter (classic BPF,
`SO_ATTACH_FILTER`, socket(7)) needs no privilege. A peer whose packets are dropped waits and tries again, at growing
intervals.
"""

import ctypes
import ipaddress
import os
import socket
from collections.abc import Sequence

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27

# linux/filter.h and linux/bpf_common.h: load 4 or 2 bytes at a fixed place, compare and jump, jump, return.
_LOAD_WORD, _LOAD_HALF, _JUMP_IF_EQUAL, _JUMP, _RETURN = 0x20, 0x28, 0x15, 0x05, 0x06
# Places relative to the network header, and of the protocol of the packet.
_NETWORK, _PROTOCOL = 0xFFF00000, 0xFFFFF000
_IPV4_SOURCE, _IPV6_SOURCE = _NETWORK + 12, _NETWORK + 8
_IS_IPV4 = 0x0800
_DROP, _PASS = (_RETURN, 0, 0, 0), (_RETURN, 0, 0, 0xFFFFFFFF)

Instruction = tuple[int, int, int, int]
"""Code, offset of the jump if true, offset of the jump if false, constant."""


def filter_program(addresses: Sequence[str], *, only_these: bool) -> list[Instruction]:
    """A program that drops the packets from these addresses, or with `only_these` those from all others.

    Args:
        addresses: IPv4 addresses, and IPv6 addresses or /64 networks. An IPv6 address stands for its /64 network.
    """
    networks = [ipaddress.ip_network(each, strict=False) for each in addresses]
    ipv4 = [int(each.network_address) for each in networks if each.version == 4]
    ipv6 = [int(each.network_address) >> 64 for each in networks if each.version == 6]
    listed, other = (_PASS, _DROP) if only_these else (_DROP, _PASS)
    first: list[Instruction] = [(_LOAD_WORD, 0, 0, _IPV4_SOURCE)]
    for address in ipv4:
        first += [(_JUMP_IF_EQUAL, 0, 1, address), listed]
    first.append(other)
    second: list[Instruction] = []
    for network in ipv6:
        second += [
            (_LOAD_WORD, 0, 0, _IPV6_SOURCE),
            (_JUMP_IF_EQUAL, 0, 3, network >> 32),
            (_LOAD_WORD, 0, 0, _IPV6_SOURCE + 4),
            (_JUMP_IF_EQUAL, 0, 1, network & 0xFFFFFFFF),
            listed,
        ]
    second.append(other)
    choice: list[Instruction] = [
        (_LOAD_HALF, 0, 0, _PROTOCOL),
        (_JUMP_IF_EQUAL, 1, 0, _IS_IPV4),
        (_JUMP, 0, 0, len(first)),
    ]
    return [*choice, *first, *second]


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


class ListenerFilter:
    """The filter of one listening TCP socket.

    Established connections are not affected. Args:
        descriptor: of the listening socket; it is duplicated.

    Raises:
        OSError: the descriptor is no listening socket.
    """

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=os.dup(descriptor))
        if not self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            self._socket.close()
            raise OSError("the descriptor is no listening socket")

    def refuse(self, addresses: Sequence[str]) -> None:
        """Refuse new connections of exactly these addresses. Raises OSError if the kernel takes no filter."""
        if addresses:
            self._attach(filter_program(addresses, only_these=False))
        else:
            remove_filter(self._socket)

    def admit_only(self, addresses: Sequence[str]) -> None:
        """Refuse new connections of all other addresses. Raises OSError if the kernel takes no filter."""
        self._attach(filter_program(addresses, only_these=True))

    def close(self) -> None:
        """Close the duplicate; the filter stays with the socket."""
        self._socket.close()

    def _attach(self, program: Sequence[Instruction]) -> None:
        instructions = (_Instruction * len(program))(*(_Instruction(*each) for each in program))
        value = _Program(len(program), instructions)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, bytes(value))


def remove_filter(connection: socket.socket) -> None:
    """Remove the filter of a socket. A connection has the one that its listener had when it was accepted."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
    except FileNotFoundError:
        return  # there is none
