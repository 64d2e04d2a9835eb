"""The other end of a connection."""

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peer:
    """The sender of a ZeroMQ message: IP address, and Z85 public key if the socket uses CURVE."""

    address: str
    key: str

    @property
    def is_local(self) -> bool:
        """True for a peer on this machine (loopback, or a local socket, which has no IP address)."""
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return self.address.startswith("localhost:")
