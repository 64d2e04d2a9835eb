"""By which names the pages may be asked for: the Host field of a request.

A page of the web cannot read the pages of another host, but the owner of its host name can let that name point
to 127.0.0.1 a moment later (DNS rebinding): the browser then asks the node, and says that name. So a node that listens
on the loopback only answers to names that no other host can own.
"""

import socket
from collections.abc import Collection
from ipaddress import ip_address

LOCALHOST = "localhost"


class HostNames:
    """The names to which a node answers.

    Args:
        host: the address or name that it listens on.
        names: further names, of a proxy for example; if there are any, other names are refused wherever it listens.
    """

    def __init__(self, host: str = LOCALHOST, names: Collection[str] = ()) -> None:
        self._any = not names and not _is_loopback(host)
        self._names = {LOCALHOST, _name(host), *(_name(name) for name in names)}

    def accept(self, field: str) -> bool:
        """Whether a request with this Host field is answered; its port may be any, as that of a tunnel is.

        An address cannot point to another one, so each address is accepted.
        """
        name = _name(field)
        return self._any or name in self._names or name.endswith(f".{LOCALHOST}") or _is_address(name)


def _name(field: str) -> str:
    """A name or an address without port, brackets, and the dot at its end."""
    if field.startswith("["):
        return field[1:].partition("]")[0]
    name = field if _is_address(field) else field.partition(":")[0]
    return name.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        # It will not be bound either.
        return True
    return all(ip_address(address[0]).is_loopback for *_, address in found)
