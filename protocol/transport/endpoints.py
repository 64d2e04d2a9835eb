"""What the form of a ZeroMQ endpoint says about its socket."""

# The longest path that fits into the address of a Unix socket (unix(7): 108 bytes with the terminating zero).
MAX_UNIX_PATH = 107


def is_ipv6(endpoint: str) -> bool:
    """Whether an endpoint has an IPv6 address, such as tcp://[::1]:5555.

    A ZeroMQ socket needs the option IPV6 for it. Host names resolve to IPv4 addresses, so a machine without IPv6 keeps
    its sockets.
    """
    return endpoint.startswith("tcp://[")


def fits_unix_address(endpoint: str) -> bool:
    """Whether the path of an ipc:// endpoint fits into the address of a Unix socket; true for other endpoints."""
    return not endpoint.startswith("ipc://") or len(_bytes_of_path(endpoint)) <= MAX_UNIX_PATH


def _bytes_of_path(endpoint: str) -> bytes:
    return endpoint.removeprefix("ipc://").encode("utf-8", "surrogateescape")
