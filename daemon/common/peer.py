"""The other end of a connection."""

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peer:
    """The other side of a message, as ZeroMQ knows it: IP address, and Z85 public key where the socket has CURVE."""

    address: str
    key: str

    @property
    def is_local(self) -> bool:
        """True for a peer on this machine (loopback, or a local socket, whose address is no IP address)."""
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return self.address.startswith("localhost:")
