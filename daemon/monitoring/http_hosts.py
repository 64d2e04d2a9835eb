"""Host names to which the HTTP server answers: a check of the Host field of requests.

A web page cannot read the pages of another host. But the owner of its host name can let that name point to 127.0.0.1
later (DNS rebinding). The browser then sends requests with that name to the node. So a node that listens on the
loopback interface answers only to names that no attacker can own.
"""

import re
import socket
from collections.abc import Collection
from ipaddress import ip_address

LOCALHOST = "localhost"
# Behind an address in brackets there may be a port and nothing else: [::1].example is a name that an attacker can own.
_FIELD = re.compile(r"(\[(?P<address>[^\[\]]*)\]|(?P<name>[^:\[\]]*))(:\d*)?")


class HostNames:
    """The names to which a node answers.

    Args:
        host: the address or name on which the node listens.
        names: further names, such as that of a proxy; if there are any, other names are refused on every interface.
    """

    def __init__(self, host: str = LOCALHOST, names: Collection[str] = ()) -> None:
        self._any = not names and not _is_loopback(host)
        self._names = {LOCALHOST, _name(host), *(_name(name) for name in names)}

    def accept(self, field: str) -> bool:
        """True if the node answers a request with this Host field; any port is accepted, because a tunnel has its own.

        Every address is accepted: unlike a name, an address cannot point to another address.
        """
        name = _name(field)
        return self._any or name in self._names or name.endswith(f".{LOCALHOST}") or _is_address(name)


def _name(field: str) -> str:
    """A name or an address without port, brackets and final dot; empty if the field has another form."""
    if _is_address(field):
        return field
    found = _FIELD.fullmatch(field)
    return "" if found is None else (found["address"] or found["name"]).lower().removesuffix(".")


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
        # The node cannot bind to this name either.
        return True
    return all(ip_address(address[0]).is_loopback for *_, address in found)
