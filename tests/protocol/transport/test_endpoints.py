"""What the form of an endpoint says about its socket."""

import pytest

from hltnode.protocol.transport.endpoints import MAX_UNIX_PATH, fits_unix_address, is_ipv6


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("tcp://[::1]:5555", True),
        ("tcp://[::]:*", True),
        ("tcp://127.0.0.1:5555", False),
        ("tcp://*:5555", False),
        ("tcp://node:5555", False),
        ("ipc:///run/[x].sock", False),
    ],
)
def test_brackets_tell_an_address_of_ipv6(endpoint: str, expected: bool) -> None:
    assert is_ipv6(endpoint) is expected


def test_the_path_of_a_unix_socket_has_a_limit_in_bytes() -> None:
    longest = "/" + (MAX_UNIX_PATH - 1) * "d"
    assert fits_unix_address(f"ipc://{longest}")
    assert not fits_unix_address(f"ipc://{longest}d")
    assert not fits_unix_address(f"ipc://{longest[:-1]}é")
    assert fits_unix_address(f"tcp://{200 * 'd'}:5555")
